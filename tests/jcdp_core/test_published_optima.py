"""Every optimum that the paper's branch and bound proved, among the first 2000 published chains of a length.

The published makespans are here as checksums: SHA-256 of the decimal numbers, one a line, of the rows that
are marked as finished. Data: S. Märtens, Zenodo, doi:10.5281/zenodo.15373160.
"""

from hashlib import sha256

import pytest
from jcdp_strategies import published_chains

from jcdp_core import solve

UNFINISHED = {
    (6, 4): [18, 191, 393, 399, 525, 666, 831, 993, 1032, 1056, 1096, 1172, 1236,
             1284, 1388, 1472, 1652, 1765, 1804, 1872, 1918],
    (6, 5): [28, 165, 207, 215, 423, 1032],
}  # fmt: skip
"""Rows (0-based) that the published search did not finish, by length and number of machines."""

CHECKSUMS = {
    (2, 2): "caa360bdaed30805825318cbed0c991008db95a23133cfdb5ce9b6feeb4ce85a",
    (3, 2): "4da0d0092c693d4b25d883e030e2c4d51750b3e188125781e655ceceb2728cef",
    (3, 3): "a16c6f42f9001548ca80bd9497362aacacd9776369b9d9bb25e790047d548f60",
    (4, 2): "deef69e800108ac4de808b87f01ccc94af0834873a22c873aa6f7dabb666c59b",
    (4, 3): "b9ddc89255965b4e366e32a8ec46e041720d032f2e8734c7d259144ea98e6d8d",
    (4, 4): "bf3a59c045e39c0d67a899f6331c323b01cf581f5e72987d0ebfd3ba64939b23",
    (5, 2): "fce4f0d1f364ccbde531165d720f60fabc2c1e0d9fbda5c0e2e98c330a10842b",
    (5, 3): "461c6e61bfb4908f4c5b7640ff9a13bc5088d7111a79e99ab283b9dd68f8a020",
    (5, 4): "c7ecf5e1cb56b911a32c2d6b2f8e666ca105fe60042f68577a37d4b323b91dbf",
    (5, 5): "1403e961fc3079e445e1b80fa60faf0f1496881dccbf7c02692797a102344cde",
    (6, 2): "f2126de39f511ecf9f1f5caef5d0c3c372759de5147007fe88652ec16706dd14",
    (6, 3): "bd9ff256c28594c5b1f2416341cd56c03767153d62ed9005f9dcf6e318f4482a",
    (6, 4): "d4f2cedce348ac210f11620246812ff7b6e3624870d5bd97b54763abade2f9e4",
    (6, 5): "329a60272a40f8d9e935356fe5a6a118c6330fb344ab2e2941fa14fbddccdc5f",
    (6, 6): "3c7b6efb05f10ab6117b26fc6605e7367c0bb92a32eb6ac2ed4ec15c1d5ed8cc",
}


@pytest.mark.parametrize(("q", "machines"), sorted(CHECKSUMS))
def test_optima_equal_the_published_ones(q, machines):
    makespans = []
    for row, chain in enumerate(published_chains()[q]):
        if row not in UNFINISHED.get((q, machines), ()):
            solution = solve(chain, machines=machines, method="exact")
            assert solution.optimal
            makespans.append(str(solution.makespan))
    assert sha256("\n".join(makespans).encode()).hexdigest() == CHECKSUMS[q, machines]
