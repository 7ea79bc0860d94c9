"""Checks that a conda recipe is accepted, and rendered for Linux: render.py RECIPE"""

import sys

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

VARIANTS = """
c_compiler: [gcc]
c_stdlib: [sysroot]
rust_compiler: [rust]
"""
PLATFORMS = ("linux-64", "linux-aarch64")

recipe = Stage0Recipe.from_file(sys.argv[1])
for platform in PLATFORMS:
    variants = recipe.render(
        VariantConfig.from_yaml(VARIANTS),
        RenderConfig(platform=PlatformConfig(target_platform=platform)))
    assert len(variants) == 1, variants
    package = variants[0].recipe.package
    print(platform, package.name, package.version)
