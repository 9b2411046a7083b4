#!/bin/bash
# Stops the BE before the container is told to end: the FEs hear of it and running reads end first.
DORIS_ROOT=${DORIS_ROOT:-/opt/apache-doris}
exec "$DORIS_ROOT/be/bin/stop_be.sh" --grace
