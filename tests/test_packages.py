"""What the two packages export, and their version."""

import ast
import importlib.metadata
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import jcdp_core
import tapesplit

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", [jcdp_core, tapesplit])
def test_the_version_is_that_of_the_distribution(package):
    assert package.__version__ == importlib.metadata.version("tapesplit")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert package.__version__ == project["version"]


def test_without_an_installation_the_version_is_unknown(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert tapesplit.__version__ == "unknown"


@pytest.mark.parametrize("package", [jcdp_core, tapesplit])
def test_completion_offers_what_is_public(package):
    assert dir(package) == sorted([*package.__all__, "__version__"])
    assert len(set(package.__all__)) == len(package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("package", [jcdp_core, tapesplit])
def test_every_exception_is_exported(package):
    errors = importlib.import_module(f"{package.__name__}.errors")
    assert set(errors.__all__) <= set(package.__all__)
    assert all(getattr(package, name) is getattr(errors, name) for name in errors.__all__)


def imports(folder):
    """Return module and name of what the modules in a folder import, name None for a whole module."""
    for path in folder.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.ImportFrom):
                yield from ((path.name, statement.module, alias.name) for alias in statement.names)
            elif isinstance(statement, ast.Import):
                yield from ((path.name, alias.name, None) for alias in statement.names)


@pytest.mark.parametrize("package", [jcdp_core, tapesplit])
def test_modules_take_from_each_other_what_they_offer(package):
    """A name that another module imports is in ``__all__`` of the module that defines it."""
    for path, module, name in imports(ROOT / package.__name__):
        if name and module.startswith(package.__name__):
            source = importlib.import_module(module)
            is_module = hasattr(getattr(source, name), "__spec__")
            assert is_module or name in source.__all__, f"{path}: {module}.{name}"


@pytest.mark.parametrize("package", [jcdp_core, tapesplit])
def test_modules_offer_what_others_take(package):
    """A name in ``__all__`` is imported by another module, a test or a script, or it is a command."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    taken = {tuple(command.split(":")) for command in scripts.values()}
    for folder in ("jcdp_core", "tapesplit", "tests", "benchmarks", "examples"):
        taken |= {(module, name) for _, module, name in imports(ROOT / folder)}
    for path in (ROOT / package.__name__).rglob("[!_]*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        offered = getattr(importlib.import_module(module), "__all__", ())
        assert [name for name in offered if (module, name) not in taken] == [], module


def test_tapesplit_takes_public_names_of_the_solver_library():
    taken = [entry for entry in imports(ROOT / "tapesplit") if entry[1].startswith("jcdp_core")]
    assert ("planner.py", "jcdp_core", "solve") in taken
    for path, module, name in taken:
        public = module == "jcdp_core" and name in {*jcdp_core.__all__, None}
        assert public, f"{path}: {module}.{name}"


@pytest.mark.parametrize("name", ["jacobian", "grad", "hessian"])
def test_names_of_autograd_are_no_modules(name):
    assert find_spec(f"tapesplit.{name}") is None
