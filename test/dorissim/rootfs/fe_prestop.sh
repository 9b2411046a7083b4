#!/bin/bash
# Stops the FE before the container is told to end.
DORIS_ROOT=${DORIS_ROOT:-/opt/apache-doris}
exec "$DORIS_ROOT/fe/bin/stop_fe.sh" --grace
