"""Is a conda recipe accepted, and rendered for Linux and Windows? render.py RECIPE"""

import sys

from rattler_build import (JinjaConfig, PlatformConfig, RenderConfig, Stage0Recipe,  # noqa: F401
                           VariantConfig)

recipe = Stage0Recipe.from_file(sys.argv[1])
print(recipe)
