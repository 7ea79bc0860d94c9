"""Hooks of several systems, and what a system without one has."""

import importlib


def version(system):
    """A system's own, or its package's."""
    name = system.__name__.rpartition(".")[2]
    own = getattr(system, "version", None)
    return own() if own else importlib.import_module(name).__version__


def transposed(x):
    return x.T


def reversed(x):
    return x[::-1]


def data_ptr(x):
    return x.data_ptr()


def exported(x):
    """The address in a capsule."""
    from ours import Facts, capsules

    return Facts(capsules.request(x)).address


def to_host(system):
    from checks import export_to_host

    return export_to_host(system)
