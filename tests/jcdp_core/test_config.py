"""Configuration files: keys are read, written and described from one table; errors name line and key."""

import sys
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jcdp_core.config import Config, key_table, read_config
from jcdp_core.errors import ArgumentTypeError, ConfigError
from jcdp_core.results import read_results

PUBLISHED = """\
// the published statistics
length 1,2,3,4,5,6,7,8
amount 10000
size_range 5 50
dag_size_range 1000 10000
available_threads 8
available_memory 0
matrix_free 1

  // indented comment
time_to_solve 10
seed 4711
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a configuration file and returns its path."""

    def write(text):
        path = tmp_path / "config.in"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_reads_the_published_file(write):
    assert read_config(write(PUBLISHED)) == Config(
        length=(1, 2, 3, 4, 5, 6, 7, 8),
        amount=10000,
        size_range=(5, 50),
        dag_size_range=(1000, 10000),
        available_threads=8,
        time_to_solve=10.0,
        seed=4711,
    )


def test_zero_means_unlimited():
    config = Config(available_threads=0, available_memory=0, time_to_solve=0.0)
    assert (config.machines, config.memory_limit, config.time_limit) == (None, None, None)
    config = Config(available_threads=3, available_memory=700, time_to_solve=1.5)
    assert (config.machines, config.memory_limit, config.time_limit) == (3, 700, 1.5)


def _ordered(numbers):
    return st.tuples(numbers, numbers).map(lambda pair: tuple(sorted(pair)))


_counts = st.integers(1, 2**64 - 1)
_factors = _ordered(st.floats(0.5, 1e6) | st.fractions("1/2", 10**6) | st.decimals("0.5", 10**6))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.builds(
        Config,
        length=st.lists(st.integers(1, 1000), min_size=1, max_size=5).map(tuple),
        amount=st.integers(1, sys.maxsize // 5),
        size_range=_ordered(_counts),
        dag_size_range=_ordered(_counts),
        tangent_factor_range=_factors,
        adjoint_factor_range=_factors,
        density_range=_ordered(st.floats(0, 1)),
        available_threads=st.integers(0, 2**64 - 1),
        available_memory=st.integers(0, 2**64 - 1),
        matrix_free=st.booleans(),
        time_to_solve=st.floats(0, 1e9) | st.integers(0, 10**18) | st.decimals(0, 10**9, places=3),
        seed=st.integers(0, 2**64 - 1),
    )
)
def test_dump_reads_back(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("dump") / "config.in"
    path.write_text(str(config), encoding="utf-8")
    assert read_config(path) == config


def test_table_lists_every_key_with_its_default():
    lines = key_table().splitlines()
    assert [line.split()[0] for line in lines] == [key.name for key in fields(Config)]
    assert lines[-1].split()[-1] == "[5489]"


@pytest.mark.parametrize("path", [None, 3, b"batch.in", Config()])
def test_a_path_is_a_path(path):
    with pytest.raises(
        ArgumentTypeError, match=r"path is .*, where a str is expected; give the name of a config"
    ):
        read_config(path)
    with pytest.raises(
        ArgumentTypeError, match=r"path is .*, where a str is expected; give the name of a result"
    ):
        read_results(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sizerange 5 50", r"unknown key 'sizerange'; did you mean 'size_range'\?"),
        ("SEED 5", r"unknown key 'SEED'; did you mean 'seed'\?"),
        ("xyzzy 1", r"unknown key 'xyzzy'; the keys are length, amount, .*, seed"),
        ("amount=3", r"unknown key 'amount=3'; write a space between a key and its value"),
        ("amount", r"amount: the value is missing; write 'amount N'"),
        ("amount ten", r"amount: 'ten' is not an integer"),
        ("amount 1_0", r"amount: '1_0' is not an integer: give digits only"),
        ("amount 0", r"amount: 0 is out of range: give an integer from 1"),
        ("length 3,,4", r"length: '3,,4' is not a list of lengths: give integers and commas, as in 4,5,6"),
        ("length 1_0", r"length: '1_0' is not a list of lengths"),
        ("length 3,0", r"length: 0 is out of range"),
        ("length 1000000000000000000", r"length: 10* is out of range: give an integer from 1 to 100000"),
        ("size_range 50 5", r"size_range: the range 50 5 is reversed: write 5 50"),
        ("size_range 5", r"size_range: '5' is not a range: give two numbers, as in 5 50"),
        ("size_range 5 50 500", r"size_range: '5 50 500' is not a range"),
        ("size_range 0 5", r"size_range: 0 is out of range: give an integer from 1"),
        ("dag_size_range 1 1e5", r"dag_size_range: '1e5' is not an integer: give digits only"),
        ("tangent_factor_range 2 1", r"tangent_factor_range: the range 2.0 1.0 is reversed"),
        ("adjoint_factor_range 1 nan", r"adjoint_factor_range: nan is out of range"),
        ("density_range -1 1", r"density_range: -1.0 is out of range"),
        ("density_range low 1", r"density_range: 'low' is not a number"),
        ("matrix_free yes", r"matrix_free: 'yes' is not a flag: give 0 or 1"),
        ("time_to_solve -1", r"time_to_solve: -1.0 is not a time"),
        ("seed -1", r"seed: -1 is out of range: give an integer from 0"),
        ("seed 18446744073709551616", r"seed: 18446744073709551616 is out of range"),
        ("available_threads 7", r"available_threads: given twice"),
        ("length 6 // six", r"length: '6 // six' .* as in 4,5,6; write comments on lines of their own"),
        ("size_range 5 50 // wide", r"size_range: .* as in 5 50; write comments on lines of their own"),
        ("density_range 0 //1", r"density_range: '//1' is not a number: .*; write comments on lines of"),
        (
            "length 6 # six",
            r"length: '6 # six' .*; write comments on lines of their own, which begin with //",
        ),
        ("# six links", r"unknown key '#'; comments begin with //"),
        ("matrix_free 1 // yes", r"matrix_free: .* give 0 or 1; write comments on lines of their own"),
    ],
)
def test_errors_name_file_line_and_key(write, line, message):
    path = write(f"available_threads 3\n\n// a comment\n{line}\n")
    with pytest.raises(ConfigError, match=rf"config\.in:4: {message}"):
        read_config(path)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.in"):
        read_config(tmp_path / "absent.in")
    (tmp_path / "binary.in").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.in: not a text file"):
        read_config(tmp_path / "binary.in")


@pytest.mark.parametrize("text", ["", "\n", "// length 6\n"])
def test_files_that_say_nothing(write, text):
    with pytest.raises(ConfigError, match=r"config\.in: sets no key; write lines such as 'length 6'"):
        read_config(write(text))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"length": ()}, "length: no length given"),
        ({"amount": True}, "amount: True is not an integer"),
        ({"amount": 1.0}, "amount: 1.0 is not an integer"),
        ({"size_range": (9, 8)}, "size_range: the range 9 8 is reversed"),
        ({"size_range": (9,)}, r"size_range: \(9,\) is not a range: give two numbers"),
        ({"length": 3}, r"length: 3 is not a tuple of lengths: give one or more integers, as in \(4, 5, 6\)"),
        ({"size_range": 9}, r"size_range: 9 is not a range: give two numbers"),
        ({"density_range": 0.5}, r"density_range: 0.5 is not a range: give two numbers"),
        ({"density_range": (0, 0.5, 1)}, r"density_range: .* is not a range"),
        ({"matrix_free": 1}, "matrix_free: 1 is not a flag"),
        ({"amount": 2**63}, "amount: 9223372036854775808 chains per length are more than can be counted"),
        ({"amount": 2**62, "length": (2, 3)}, "amount: 4611686018427387904 chains per length are more than"),
        ({"time_to_solve": 10**400}, "time_to_solve: inf is not a time: give seconds, or 0 for no limit"),
        ({"time_to_solve": -(10**400)}, "time_to_solve: -inf is not a time"),
        ({"time_to_solve": True}, "time_to_solve: True is not a number"),
        ({"time_to_solve": "10"}, "time_to_solve: '10' is not a number"),
        ({"time_to_solve": None}, "time_to_solve: None is not a number"),
        ({"tangent_factor_range": (1, 10**400)}, "tangent_factor_range: inf is out of range: give a finite"),
        ({"tangent_factor_range": (True, True)}, "tangent_factor_range: True is not a number"),
        ({"length": "234"}, "length: '234' is not a tuple of lengths"),
        ({"length": {2, 3}}, r"length: \{2, 3\} is not a tuple of lengths"),
        ({"size_range": b"56"}, "size_range: b'56' is not a range"),
        ({"tangent_factor_range": (0.4, 1.0)}, "tangent_factor_range: .* rounds to a cost of 0 fma"),
        (
            {"dag_size_range": (9, 9999), "adjoint_factor_range": (1.0, 1e306)},
            r"adjoint_factor_range: the upper end 1e\+306 .* overflows a float; lower it",
        ),
    ],
)
def test_values_are_checked_without_a_file_too(values, message):
    with pytest.raises(ConfigError, match=message):
        Config(**values)


@pytest.mark.parametrize("seconds", [0, 10, 0.5, 1234567, 123456.75, 1e300, Decimal("0.1")])
def test_times_are_written_to_the_last_digit(write, seconds):
    config = Config(time_to_solve=seconds)
    assert config.time_to_solve == float(seconds)
    assert read_config(write(str(config))) == config


def test_ends_of_ranges_of_any_kind_become_floats(write):
    config = Config(tangent_factor_range=(Decimal("1.5"), Fraction(5, 2)), adjoint_factor_range=(1, 2))
    assert "tangent_factor_range 1.5 2.5\nadjoint_factor_range 1.0 2.0\n" in str(config)
    assert read_config(write(str(config))) == config


def test_lines_that_do_not_go_together_name_the_file(write):
    with pytest.raises(ConfigError, match=r"config\.in: tangent_factor_range: .* rounds to a cost of 0 fma"):
        read_config(write("tangent_factor_range 0.4 1\n"))


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    path = tmp_path / "config.in"
    path.write_text("length 3\n", encoding="utf-8-sig")
    assert read_config(path).length == (3,)


def test_sequences_of_numbers_are_stored_as_tuples():
    config = Config(
        length=range(2, 5),
        size_range=range(5, 7),
        dag_size_range=np.array([10, 20]),
        tangent_factor_range=np.array([1.0, 2.0]),
        adjoint_factor_range=[1, np.float64(2)],
        amount=np.int64(3),
        matrix_free=np.bool_(False),
    )
    assert config == Config(
        length=(2, 3, 4),
        size_range=(5, 6),
        dag_size_range=(10, 20),
        tangent_factor_range=(1.0, 2.0),
        adjoint_factor_range=(1, 2.0),
        amount=3,
        matrix_free=False,
    )
    assert hash(config) == hash(Config(**{key.name: getattr(config, key.name) for key in fields(Config)}))
    assert config.matrix_free is False
    assert str(config).startswith("length 2,3,4\namount 3\nsize_range 5 6\ndag_size_range 10 20\ntangent_")
