"""Pictures of plans: what they show, that large tapes are folded, that each format is well-formed."""

import builtins
import re
from itertools import accumulate, pairwise
from xml.etree import ElementTree as ET

import autograd.numpy as np
import numpy as onp
import pytest
from draw_plans import bottleneck, plan_of, records_of, scalars, two_links
from executors import SerialExecutor
from hypothesis import given, settings
from hypothesis import strategies as st

from tapesplit import parallel_jacobian
from tapesplit.cuts.separators import Separator
from tapesplit.cuts.width_profile import WidthProfile, width_profile
from tapesplit.draw.bars import comparison_scene
from tapesplit.draw.dot import to_dot
from tapesplit.draw.fold import fold
from tapesplit.draw.gantt import gantt_scene
from tapesplit.draw.layout import bands, layout
from tapesplit.draw.profile import profile_scene
from tapesplit.draw.scene import INK, STYLES, Area, Box, Label, Line
from tapesplit.draw.split import split_scene
from tapesplit.draw.svg import scene_css, to_svg
from tapesplit.draw.trees import bracketing_scene, precedence_scene

SVG = "{http://www.w3.org/2000/svg}"


def skips(x):
    """Use the input again after each operation, so that arcs pass over columns."""
    y = np.sin(x)
    for _ in range(5):
        y = y * x
    return y


def stages(x):
    """Pass many stages of two strands, alternately wide and narrow."""
    a, b = x[:12], x[12:]
    for step in range(40):
        weight = onp.cos(onp.arange(144.0)).reshape(12, 12)[: 3 if step % 3 == 1 else 12] / 6
        a = np.tanh(weight[:, : a.shape[0]] @ a)
        b = np.sin(weight[:, : b.shape[0]] @ b) * a[0]
    return np.concatenate([a, b])


def deep(x):
    """Take one link of many columns."""
    for _ in range(17):
        x = np.sin(x)
    return x


def joined(x, y):
    """Use two inputs."""
    return np.concatenate([x, y * x[0]])


PLANS = {
    "two links": two_links,
    "skips": lambda: plan_of(skips, 3),
    "long chain": lambda: plan_of(stages, 24),
    "long link": lambda: plan_of(deep, 3),
    "folded": lambda: plan_of(scalars, 4),
    "identity": lambda: plan_of(lambda x: x, 3),
    "two inputs": lambda: parallel_jacobian(joined, (0, 1), machines=1).plan(np.ones(2), np.ones(3)),
}


@pytest.fixture(params=PLANS)
def plan(request):
    return PLANS[request.param]()


def widths_scene(plan):
    return profile_scene(width_profile(plan.graph, plan.separators))


@pytest.fixture(
    params=[split_scene, gantt_scene, bracketing_scene, precedence_scene, comparison_scene, widths_scene]
)
def scene(request, plan):
    return request.param(plan)


def test_everything_lies_inside_the_picture(scene):
    for shape in scene.shapes:
        match shape:
            case Box():
                assert 0 <= shape.x <= shape.x + shape.width <= scene.width, shape
                assert 0 <= shape.y <= shape.y + shape.height <= scene.height, shape
                assert shape.height > 0 or shape.style in {"chunk2", "tangent"}, shape
            case Line() | Area():
                assert all(0 <= x <= scene.width and 0 <= y <= scene.height for x, y in shape.points), shape


def test_scenes_are_well_formed_svg_with_known_styles(scene):
    root = ET.fromstring(to_svg(scene))  # noqa: S314 - our own text
    assert root.tag == f"{SVG}svg"
    assert root.attrib["aria-label"] == scene.title
    styles = {element.attrib["class"] for element in root.iter() if "class" in element.attrib}
    assert styles <= {*STYLES, "ts", "tip", "ink", "muted", "paper"}


def test_boxes_of_the_split_tape_do_not_overlap(plan):
    boxes = [shape for shape in split_scene(plan).shapes if isinstance(shape, Box)]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart_x = a.x + a.width <= b.x or b.x + b.width <= a.x
            assert apart_x or a.y + a.height <= b.y or b.y + b.height <= a.y, (a, b)


def test_arcs_lead_from_left_to_right_and_end_at_their_boxes(plan):
    folded = fold(plan)
    placed = layout(folded, len(plan.chunks))
    for bundle, route in zip(folded.bundles, placed.routes, strict=True):
        assert route[0] == placed.places[bundle.tail]
        assert route[-1] == placed.places[bundle.head]
        assert all(after[0] == before[0] + 1 for before, after in pairwise(route))


def test_each_chunk_has_its_own_columns(plan):
    folded = fold(plan)
    placed = layout(folded, len(plan.chunks))
    assert len(placed.bounds) == len(plan.chunks) + 1
    for group, (column, _) in zip(folded.groups, placed.places, strict=True):
        if group.chunk < 0:
            assert column == 0
        else:
            assert placed.bounds[group.chunk] <= column < placed.bounds[group.chunk + 1]


@given(st.lists(st.integers(1, 15), min_size=1, max_size=40), st.integers(3, 12))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_bands_take_all_columns_and_none_is_too_long(widths, most):
    bounds = tuple(accumulate(widths, initial=1))
    starts = bands(bounds, most)
    lengths = [after - before for before, after in pairwise(starts)]
    assert (starts[0], starts[-1]) == (0, bounds[-1] + 1)
    assert all(1 <= length <= most for length in lengths)
    assert lengths[-1] >= 2 or starts[-1] <= most  # the output has company
    assert len(lengths) == 1 or bounds[-1] + 1 > most
    for before, start in pairwise(starts[:-1]):  # between chunks, unless that left the band half empty
        assert start in bounds or not any(before + most / 2 < bound < start for bound in bounds)


def test_a_long_chain_is_drawn_in_bands_that_fit_on_a_page():
    plan = plan_of(stages, 24, machines=2, executor=SerialExecutor())
    assert len(plan.chain) == 40
    scene = split_scene(plan)
    assert scene.width < 1330
    names = [
        shape.text for shape in scene.shapes if isinstance(shape, Label) and re.fullmatch(r"F\d+", shape.text)
    ]
    assert names == [f"F{number}" for number in range(1, 41)]
    folded = fold(plan)
    placed = layout(folded, 40)
    starts = bands(placed.bounds, 10)
    crossing = sum(
        band_of(starts, before[0]) != band_of(starts, after[0])
        for route in placed.routes
        for before, after in pairwise(route)
    )
    arrows = [shape for shape in scene.shapes if isinstance(shape, Line) and shape.arrow]
    assert crossing >= len(starts) - 2 > 2
    assert len(arrows) == len(placed.routes) + 1 + crossing  # one leads to the output
    assert all(x < y for arrow in arrows for (x, _), (y, _) in pairwise(arrow.points))
    cuts = [shape for shape in scene.shapes if isinstance(shape, Line) and shape.style == "cut"]
    breaks = set(starts[1:-1]) & set(placed.bounds)
    assert breaks
    assert len(cuts) == len(plan.separators) + len(breaks)  # those on a break stand on both sides of it


def test_no_band_is_left_with_a_box_that_others_have_room_for():
    assert bands((1, 5, 13), 10) == (0, 5, 14)


def band_of(starts, column):
    return sum(start <= column for start in starts) - 1


def test_a_link_that_is_longer_than_a_page_goes_on_in_the_next_band():
    scene = split_scene(plan_of(deep, 3))
    names = [shape.text for shape in scene.shapes if isinstance(shape, Label) and shape.size == 13]
    assert names == ["F1", "F1, continued"]
    assert scene.width < 1330


def test_what_fits_on_a_page_is_one_band():
    assert bands(layout(fold(two_links()), 2).bounds, 10) == (0, 8)


def test_folding_loses_no_entry(plan):
    entries = sorted(entry for group in fold(plan).groups for entry in group.entries)
    assert entries == plan.graph.entries.tolist()


def test_small_tapes_are_not_folded():
    assert fold(two_links()).complete
    assert not fold(plan_of(scalars, 4)).complete


def test_what_two_links_compute_is_drawn_in_both():
    def misfit(x):
        u = np.ones((50, 50)) @ np.tanh(np.ones((50, 2)) @ (np.ones((2, 50)) @ x))
        return np.append(u, np.sum((x - u) ** 2))

    plan = parallel_jacobian(misfit, machines=1, cost="fma").plan(onp.ones(50))
    folded = fold(plan)
    drawn = sorted((entry, group.chunk) for group in folded.groups for entry in group.entries)
    assert drawn == sorted(
        [(0, -1), *((e, k) for k, c in enumerate(plan.chunks) for e in c.entries.tolist())]
    )
    assert len(drawn) > len(plan.structure.parents)
    cuts = [{*separator.vertices} for separator in plan.separators]
    for bundle in folded.bundles:
        tail, head = folded.groups[bundle.tail], folded.groups[bundle.head]
        assert tail.chunk <= head.chunk
        for cut in cuts[max(tail.chunk, 0) : head.chunk]:
            assert cut.issuperset(tail.entries)


def test_boxes_give_the_type_of_values_that_are_not_float64():
    x = onp.ones((2, 3), dtype=onp.float32)
    groups = fold(parallel_jacobian(lambda x: np.sum(np.sin(x), axis=1), machines=1).plan(x)).groups
    assert [group.lines[1] for group in groups] == ["float32 (2,3)", "float32 (2,3)", "float32 (2,)"]
    assert groups[0].tip == "entry 0: input\nvalue float32 (2,3)"


def test_boxes_of_numbers_and_containers_give_their_type():
    def f(x):
        _, s, _ = np.linalg.svd(np.real(np.fft.fft(x)).reshape(2, 2))
        return np.sum(s) * s

    groups = fold(parallel_jacobian(f, machines=1).plan(onp.arange(4.0))).groups
    lines = [group.lines for group in groups]
    assert ("fft", "complex128 (4,)") in lines
    assert ("svd", "SVDResult") in lines
    assert ("sum", "a number") in lines


@pytest.mark.parametrize(("x", "shape"), [(2.0, "a number"), (onp.ones(3, onp.float32), "float32 (3,)")])
def test_the_output_is_described_as_the_value_that_it_is(x, shape):
    plan = parallel_jacobian(np.sin, machines=1).plan(x)
    boxes = [box.lines for box in split_scene(plan).shapes if isinstance(box, Box)]
    assert boxes[-2:] == [("sin", shape), ("output", shape)]
    assert rf"output\n{shape}" in to_dot(plan)


@given(st.integers(1, 60), st.integers(2, 6))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_folded_tapes_stay_small(steps, n):
    def f(x):
        for _ in range(steps):
            x = np.array([np.sin(x[i]) * x[(i + 1) % n] for i in range(n)])
        return x

    plan = plan_of(f, n)
    folded = fold(plan)
    assert len(folded.groups) <= 60
    assert len({(group.chunk, group.depth) for group in folded.groups}) <= 41


def test_cuts_are_drawn_with_their_widths():
    scene = split_scene(two_links())
    cuts = [shape for shape in scene.shapes if isinstance(shape, Line) and shape.style == "cut"]
    assert len(cuts) == 1
    svg = to_svg(scene)
    assert svg.count(">2</text>") == 2  # above the cut and below it
    assert "entry 3: matmul\nvalue (2,)\n|E| 20\nlink 1" in svg
    assert "Tinted: links. Dashed: cuts with their width. Here each box is one operation." in svg


def test_the_silhouette_shows_what_is_alive_between_boxes():
    weights = [onp.ones((m, n)) for n, m in [(40, 7), (7, 20)]]

    def skipping(x):  # 40, then 7 and the first 5 of x, then these and 20, then 25
        first, kept = weights[0] @ x, x[:5]
        return np.concatenate([weights[1] @ first, kept])

    scene = split_scene(parallel_jacobian(skipping, machines=1, method="adjoint").plan(onp.ones(40)))
    _, silhouette = (shape for shape in scene.shapes if isinstance(shape, Area))
    ends = sorted({x for x, _ in silhouette.points})
    heights = [onp.ptp([y for x, y in silhouette.points if x == end]) for end in ends]
    alive = [40, 12, 25, 25]
    assert heights == pytest.approx([heights[0] * onp.log(1 + n) / onp.log(41) for n in alive])


def test_a_silhouette_that_would_be_even_is_left_out():
    scene = split_scene(plan_of(np.sin, 3))
    assert len([shape for shape in scene.shapes if isinstance(shape, Area)]) == 1  # the link
    texts = [shape.text for shape in scene.shapes if isinstance(shape, Label)]
    assert texts[-1] == "Below the graph: how many elements cross, the same everywhere."
    assert texts.count("3") == 2


def test_a_picture_without_cuts_speaks_of_none():
    svg = to_svg(split_scene(plan_of(np.sin, 3)))
    assert "Tinted: the only link. Here each box is one operation." in svg
    assert "Dashed" not in svg


def test_dot_has_a_cluster_for_each_chunk():
    dot = to_dot(two_links())
    assert re.findall(r"subgraph cluster_(\d)", dot) == ["1", "2"]
    assert '  3 -> 4 [label="2"];' in dot.splitlines()
    assert dot.count("{") == dot.count("}")


def test_bracketing_spans_the_links_of_each_step():
    plan = two_links()
    boxes = {box.lines[0]: box for box in bracketing_scene(plan).shapes}
    assert boxes["3: multiply"].width == pytest.approx(boxes["F1"].width + boxes["F2"].width + 2)
    assert boxes["3: multiply"].y < boxes["2: adjoint"].y < boxes["F1"].y


def test_the_in_tree_has_an_arrow_for_each_need():
    plan = two_links()
    arrows = [shape for shape in precedence_scene(plan).shapes if isinstance(shape, Line)]
    assert len(arrows) == sum(map(len, plan.solution.sequence.predecessors))


def test_gantt_bars_are_proportional_to_cost():
    plan = two_links()
    widths = [shape.width for shape in gantt_scene(plan).shapes if isinstance(shape, Box)]
    assert [width / sum(widths) for width in widths] == pytest.approx(
        [cost / plan.fma for cost in plan.solution.sequence.costs]
    )


def test_gantt_of_measured_times_has_two_lanes():
    plan, records = records_of(bottleneck, 12)
    tips = [shape.tip for shape in gantt_scene(plan, records).shapes if isinstance(shape, Box)]
    assert len(tips) == 2 * len(plan.tasks)
    assert sum(tip.startswith("measured") for tip in tips) == len(plan.tasks)


def profile_of(live, minimal, cuts=(), places=()):
    separators = tuple(Separator((i,), width, "cost") for i, width in enumerate(cuts))
    return WidthProfile(
        *map(onp.array, (range(len(live)), live, minimal)), separators, onp.array(places, dtype=float)
    )


def test_bars_of_a_profile_have_the_heights_of_their_widths():
    for live, minimal, scale in (
        ([10, 40], [10, 20], "Elements; each"),
        ([10, 640], [10, 20], "Elements (log"),
    ):
        profile = profile_of(live, minimal)
        scene = profile_scene(profile)
        heights = [shape.height for shape in scene.shapes if isinstance(shape, Box)]
        pairs = [width for pair in zip(live, minimal, strict=True) for width in pair]
        assert heights == pytest.approx([180 * profile.height(width) for width in pairs])
        texts = [shape.text for shape in scene.shapes if isinstance(shape, Label)]
        assert any(text.startswith(scale) for text in texts)
    assert heights[2] == pytest.approx(180)
    assert heights[3] / heights[2] == pytest.approx(2 / 7)  # 5, 10, 20, ..., 640: 20 is two steps of seven


def test_separators_hang_in_a_profile_at_their_place_and_width():
    profile = profile_of([10, 40, 40, 40], [10, 20, 20, 20], cuts=[10, 20, 30], places=[0.5, 0.52, 3.0])
    scene = profile_scene(profile)
    bars = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.style == "tangent"]
    dots = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.style == "separator"]
    cuts = [shape for shape in scene.shapes if isinstance(shape, Line) and shape.style == "cut"]
    assert len(dots) == len(cuts) == 3
    centers = [dot.x + dot.width / 2 for dot in dots]
    assert centers[0] == pytest.approx(bars[0].x + bars[0].width / 2)
    assert centers[2] == pytest.approx((bars[2].x + bars[2].width + bars[3].x) / 2)
    assert [cut.points[1] for cut in cuts] == [
        (x, pytest.approx(dot.y + dot.height / 2)) for x, dot in zip(centers, dots, strict=True)
    ]
    assert dots[1].y + dots[1].height / 2 == pytest.approx(bars[1].y)  # 20 elements both
    named = [shape.text for shape in scene.shapes if isinstance(shape, Label) and shape.strong][1:]
    assert named == ["10", "30"]  # of two that are near each other the narrower one
    texts = [shape.text for shape in scene.shapes if isinstance(shape, Label)]
    assert "Red: chosen separators; of close ones the narrowest has its width." in texts
    spaced = profile_scene(profile_of([10, 40], [10, 20], cuts=[10, 20], places=[0.5, 1.5]))
    texts = [shape.text for shape in spaced.shapes if isinstance(shape, Label)]
    assert "Red: chosen separators with their widths." in texts


@pytest.mark.parametrize(
    ("live", "ticks"),
    [
        ([3, 12], [0, 5, 10]),
        ([1, 1], [0, 1]),
        ([2, 90], [2, 5, 10, 20, 50]),
        ([8, 20_000], [10, 100, 1000, 10_000]),
    ],
)
def test_lines_across_a_profile_are_at_round_numbers(live, ticks):
    labels = [shape for shape in profile_scene(profile_of(live, live)).shapes if isinstance(shape, Label)]
    assert [int(label.text) for label in labels if label.anchor == "end" and label.text != "end"] == ticks


def test_a_profile_without_any_cut_is_drawn():
    scene = profile_scene(profile_of([-1], [-1]))
    assert scene.description.startswith("Narrowest minimum cut: no cut possible.")


def test_every_style_has_a_dark_form():
    css = scene_css()
    light, dark = css.split("@media (prefers-color-scheme:dark)")
    for name in [*STYLES, *INK]:
        assert f".ts .{name}{{" in light
        assert f".ts .{name}{{" in dark


def test_files_are_right_without_variables_and_dark_rules(scene):
    """Inkscape, librsvg and cairosvg know classes and literal colors only."""
    svg = to_svg(scene)
    assert "var(" not in svg
    rules = dict(re.findall(r"\.ts \.(\w+)\{fill:(#\w{6}|none)", svg.split("@media")[0]))
    inks = {name: light for name, (light, _) in INK.items()}
    assert rules == inks | {name: style.fill for name, style in STYLES.items()}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):  # noqa: S314 - our own text
        rect, *texts = [child for child in group if child.tag in {f"{SVG}rect", f"{SVG}text"}] or [None]
        if rect is not None and rect.attrib["class"] == "end":
            assert {text.attrib["class"] for text in texts} == {"paper"}  # pale on dark


def test_pictures_speak_of_links_only(plan):
    for scene in (split_scene(plan), widths_scene(plan), bracketing_scene(plan)):
        texts = [scene.description, *re.findall(r">([^<]+)<", to_svg(scene).split("</style>")[1])]
        assert not re.search(r"\b(chunk|part)s?\b", " ".join(texts))


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<svg"), ("dot", b"digraph"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_the_ending_says_the_format(tmp_path, suffix, start):
    if suffix in {"png", "pdf"}:
        pytest.importorskip("matplotlib")
    path = tmp_path / f"split.{suffix}"
    two_links().draw(path)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["split.gif", "split"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"let it end in \.svg, \.dot, \.gv, \.png or \.pdf$"):
        two_links().draw(tmp_path / name)


def test_a_missing_folder_is_named_before_anything_is_drawn(tmp_path):
    with pytest.raises(OSError, match=r"there is no folder '.*no'; make it, or name another$"):
        two_links().draw(tmp_path / "no" / "split.svg")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match=r"it is a folder, or you have no permission; give another name$"):
        two_links().to_html(tmp_path / "report.html")


def test_without_matplotlib_the_message_says_what_to_do(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'tapesplit\[plot\]', or draw an \.svg"):
        two_links().draw(tmp_path / "split.png")


def test_a_name_that_looks_like_markup_is_escaped(tmp_path):
    plan = plan_of(lambda x: np.sin(2 * x), 2)  # its name is <lambda>
    path = tmp_path / "split.svg"
    plan.draw(path)
    assert "&lt;lambda&gt;" in path.read_text(encoding="utf-8")
    ET.parse(path)  # noqa: S314 - our own text
