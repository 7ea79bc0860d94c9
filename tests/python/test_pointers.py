import pytest

import pointers


@pytest.mark.parametrize("name, parameters", pointers.functions(),
                         ids=lambda value: value if isinstance(value, str) else "")
def test_pointers_are_checked_first(name, parameters):
    pointers.check(name, parameters)
