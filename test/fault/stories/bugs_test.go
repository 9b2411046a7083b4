package stories

import "github.com/fairlead-dev/fairlead/internal/operator"

func seeded(settings) operator.Around { return operator.Around{} }
