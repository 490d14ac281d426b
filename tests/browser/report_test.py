#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens reports in headless Chromium and looks: report_test.py MAKE_REPORTS [PICTURE_FOLDER].

Exits 77 (ctest's "skipped") when there is no Chromium.
"""
import os
import sys
import tempfile
import unittest

import devtools

FOLDER = None
BROWSER = None


def canvas_corner(panel):
    return BROWSER.evaluate(f"(() => {{ const c = document.querySelectorAll('canvas.overlay')[{panel}];"
                            "c.scrollIntoView({block: 'center'}); const r = c.getBoundingClientRect();"
                            "return [r.left, r.top, r.width]; })()")


def point_of(panel, device, op):
    left, top, _ = canvas_corner(panel)
    box = BROWSER.evaluate(f"penstock.where({panel}, {device}, {op})")
    return left + (box["left"] + box["right"]) / 2, top + box["y"] + box["height"] / 2


def tip():
    return BROWSER.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")


def painted(panel):
    """How many different colours the drawing of a panel has."""
    return BROWSER.evaluate(f"(() => {{ const c = document.querySelectorAll('canvas.base')[{panel}];"
                            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                            "const seen = new Set(); for (let i = 0; i < d.length; i += 4)"
                            " seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()")


class Page(unittest.TestCase):
    def open(self, name):
        BROWSER.resize(1200, 900)
        BROWSER.dark(False)
        BROWSER.open(os.path.join(FOLDER, name + ".html"))
        BROWSER.settle()

    def tearDown(self):
        self.assertEqual(BROWSER.errors, [], "the page reported errors")
        others = [url for url in BROWSER.requests if not url.startswith("file://" + os.path.abspath(FOLDER))]
        self.assertEqual(others, [], "the page asked the network for something")


class SmallReport(Page):
    def setUp(self):
        self.open("small")

    def test_shows_every_part(self):
        headings = BROWSER.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual(headings, ["Timeline", "Idle time by cause", "Predicted and measured", "Over the steps",
                                    "Accounting", "Configuration"])
        panels = BROWSER.evaluate("[...document.querySelectorAll('.panel h3')].map(h => h.firstChild.data)")
        self.assertEqual(panels, ["predicted", "step 30"])
        self.assertGreater(painted(0), 6)

    def test_the_pointer_on_an_action_shows_its_times_its_bytes_and_what_it_waited_for(self):
        first = BROWSER.evaluate("penstock.find(0, 1, '1F0.0')")
        BROWSER.mouse("mouseMoved", *point_of(0, 1, first))
        text = tip()
        self.assertIn("1F0.0", text)
        self.assertIn("forward: stage 1, micro-batch 0, slice 0", text)
        self.assertIn("device 1, compute", text)
        self.assertIn("lasted\t1.000 ms", text)
        self.assertIn("1.200 ms, 2.200 ms", text)
        self.assertIn("for 0F0.0 on device 0 (ended 1.000 ms, arrived 1.200 ms)", text)
        self.assertIn("takes\t1.00 MiB from device 0", text)
        self.assertIn("gives\t1.00 MiB to device 2", text)
        self.assertIn("device holds\t696 MiB", text)
        self.assertIn("measured differs\t+", text)

    def test_the_pointer_on_a_gap_names_the_action_that_ends_it(self):
        left, top, _ = canvas_corner(0)
        box = BROWSER.evaluate("penstock.where(0, 3, penstock.find(0, 3, '3F0.0'))")
        BROWSER.mouse("mouseMoved", left + box["left"] - 20, top + box["y"] + 5)
        self.assertIn("device 3 idle", tip())
        self.assertIn("next\t3F0.0", tip())

    def test_the_pointer_on_memory_shows_bytes_by_category(self):
        left, top, _ = canvas_corner(0)
        height = BROWSER.evaluate("document.querySelectorAll('canvas.overlay')[0].getBoundingClientRect().height")
        BROWSER.mouse("mouseMoved", left + 400, top + height - 20)
        self.assertIn("device 3 holds at", tip())
        self.assertIn("weights\t600 MiB", tip())

    def test_the_tip_goes_when_the_pointer_leaves(self):
        BROWSER.mouse("mouseMoved", *point_of(0, 0, 0))
        self.assertNotEqual(tip(), "")
        BROWSER.mouse("mouseMoved", 2, 2)
        self.assertEqual(tip(), "")

    def test_the_wheel_with_control_zooms_around_the_pointer(self):
        before = BROWSER.evaluate("penstock.view()")
        x, y = point_of(0, 2, BROWSER.evaluate("penstock.find(0, 2, '2F0.1')"))
        BROWSER.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
        after = BROWSER.evaluate("penstock.view()")
        self.assertLess(after[1] - after[0], 0.7 * (before[1] - before[0]))
        self.assertAlmostEqual(point_of(0, 2, BROWSER.evaluate("penstock.find(0, 2, '2F0.1')"))[0], x, delta=8)

    def test_dragging_moves_and_dragging_with_shift_zooms_to_the_part(self):
        BROWSER.evaluate("penstock.zoomTo(0.005, 0.015)")
        BROWSER.settle()
        left, top, width = canvas_corner(0)
        self.drag(left + 600, left + 400, top + 40)
        view = BROWSER.evaluate("penstock.view()")
        self.assertGreater(view[0], 0.0055)
        self.assertAlmostEqual(view[1] - view[0], 0.01, places=6)
        self.drag(left + 400, left + 600, top + 40, modifiers=8)
        view = BROWSER.evaluate("penstock.view()")
        self.assertAlmostEqual(view[1] - view[0], 0.01 * 200 / (width - 86), delta=2e-4)

    def drag(self, start, end, y, **more):
        BROWSER.mouse("mousePressed", start, y, button="left", clickCount=1, **more)
        BROWSER.mouse("mouseMoved", (start + end) / 2, y, button="left", **more)
        BROWSER.mouse("mouseMoved", end, y, button="left", **more)
        BROWSER.mouse("mouseReleased", end, y, button="left", clickCount=1, **more)

    def test_keys_zoom_move_and_walk_through_the_actions(self):
        BROWSER.key("+")
        BROWSER.key("ArrowRight")
        view = BROWSER.evaluate("penstock.view()")
        self.assertGreater(view[0], 0)
        BROWSER.key("0")
        self.assertEqual(BROWSER.evaluate("penstock.view()[0]"), 0)
        BROWSER.key(".")
        BROWSER.key(".")
        self.assertTrue(tip().startswith("0F0.1"), tip())
        BROWSER.key(",")
        self.assertTrue(tip().startswith("0F0.0"), tip())
        BROWSER.key("Escape")
        self.assertEqual(tip(), "")

    def test_the_step_selector_changes_the_measured_timeline(self):
        BROWSER.key("[")
        panels = BROWSER.evaluate("[...document.querySelectorAll('.panel h3')].map(h => h.firstChild.data)")
        self.assertEqual(panels, ["predicted", "step 20"])
        self.assertIn("step 20 against predicted", BROWSER.evaluate("document.body.innerText"))

    def test_a_switch_hides_the_memory(self):
        height = "document.querySelectorAll('canvas.base')[0].height"
        before = BROWSER.evaluate(height)
        BROWSER.key("m")
        self.assertLess(BROWSER.evaluate(height), before - 100)

    def test_dark_light_and_paper_have_their_own_ground(self):
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        self.assertEqual(BROWSER.evaluate(ground), "rgb(255, 255, 255)")
        BROWSER.dark(True)
        BROWSER.settle()
        self.assertEqual(BROWSER.evaluate(ground), "rgb(20, 24, 28)")
        self.assertGreater(len(BROWSER.print_pdf()), 10000)
        BROWSER.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(BROWSER.evaluate(ground), "rgb(255, 255, 255)")

    def test_a_narrow_window_needs_no_sideways_scrolling(self):
        BROWSER.resize(380, 800)
        BROWSER.settle()
        self.assertLessEqual(BROWSER.evaluate("document.documentElement.scrollWidth"), 380)


class Charts(Page):
    def setUp(self):
        self.open("charts")

    def test_stand_before_the_timeline_with_their_numbers(self):
        headings = BROWSER.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual(headings[:6], ["Least time by memory", "Predicted beside published", "Memory by category", "Rejected",
                                        "Time by term", "Timeline"])
        text = BROWSER.evaluate("document.body.innerText")
        for part in ("8.38 GiB", "5,571,840", "On the fullest device.", "seconds of a step"):
            self.assertIn(part, text)
        self.assertEqual(BROWSER.evaluate("document.querySelectorAll('.barrow').length"), 5)
        self.assertEqual(BROWSER.evaluate("document.querySelectorAll('circle').length"), 6)

    def test_two_accounts_of_one_quantity_agree_on_the_diagonal(self):
        as_published, fast, slow = BROWSER.evaluate("[...document.querySelectorAll('circle')].slice(3).map(c => [c.cx, c.cy].map(a => a.baseVal.value))")
        left, low, right, high = map(float, BROWSER.evaluate("document.querySelectorAll('path.curve')[1].getAttribute('d')").replace("M", "").replace("L", " ").split())
        on_line = low + (as_published[0] - left) / (right - left) * (high - low)
        self.assertAlmostEqual(as_published[1], on_line, delta=0.1)
        self.assertAlmostEqual(fast[0] - as_published[0], as_published[0] - slow[0], delta=0.1)  # a tenth, and ten times
        self.assertEqual(fast[1], slow[1])

    def test_bars_are_as_long_as_their_values(self):
        widths = BROWSER.evaluate("[...document.querySelectorAll('.bar')].slice(0, 2).map(bar =>"
                                  " [...bar.children].map(part => part.getBoundingClientRect().width))")
        self.assertEqual([len(row) for row in widths], [3, 2])
        scale = sum(widths[1]) / 11e9
        for width, value in zip(widths[0] + widths[1], (3e9, 5e9, 1e9, 2e9, 9e9)):
            self.assertAlmostEqual(width, scale * value, delta=0.5)

    def test_fifteen_parts_of_a_bar_have_colours_that_are_told_apart(self):
        colours = BROWSER.evaluate("[...[...document.querySelectorAll('.bar')].pop().children].map(part =>"
                                   " getComputedStyle(part).backgroundColor.match(/\\d+/g).map(Number))")
        self.assertEqual(len(colours), 15)
        for i, one in enumerate(colours):
            for other in colours[:i]:
                self.assertGreater(sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5, 50, (one, other))

    def test_the_pointer_on_a_point_names_it(self):
        x, y = BROWSER.evaluate("(() => { const c = document.querySelectorAll('circle')[2]; c.scrollIntoView({block: 'center'});"
                                "const r = c.getBoundingClientRect(); return [r.left + 4, r.top + 4]; })()")
        BROWSER.mouse("mouseMoved", x, y)
        self.assertEqual(BROWSER.evaluate("document.querySelector('figure.wide .said').textContent"),
                         "large: 65.2 GiB, 8.00 s")

    def test_need_no_sideways_scrolling_in_a_narrow_window(self):
        BROWSER.resize(380, 800)
        BROWSER.settle()
        self.assertLessEqual(BROWSER.evaluate("document.documentElement.scrollWidth"), 380)

    def test_show_markup_as_text(self):
        self.assertIsNone(BROWSER.evaluate("window.hacked || null"))
        self.assertEqual(BROWSER.evaluate("document.querySelectorAll('img, iframe, object').length"), 0)


class OtherReports(Page):
    def test_twenty_thousand_actions_fit_two_megabytes_and_draw_within_a_second(self):
        self.assertLess(os.path.getsize(os.path.join(FOLDER, "large.html")), 2_000_000)
        self.open("large")
        self.assertLess(BROWSER.evaluate("penstock.drawMilliseconds()"), 1000)
        self.assertGreater(painted(0), 6)
        BROWSER.evaluate("penstock.zoomTo(7, 7.1)")
        BROWSER.settle()
        op = BROWSER.evaluate("penstock.find(1, 5, '5F1.100')")
        begin, end = BROWSER.evaluate(f"penstock.times(1, 5, {op})")
        BROWSER.evaluate(f"penstock.zoomTo({begin} - 0.02, {end} + 0.02)")
        BROWSER.settle()
        BROWSER.mouse("mouseMoved", *point_of(1, 5, op))
        self.assertIn("5F1.100", tip())

    def test_beyond_that_shares_of_time_are_drawn(self):
        self.open("shares")
        left, top, _ = canvas_corner(0)
        BROWSER.mouse("mouseMoved", left + 500, top + 30)
        self.assertIn("forward", tip())
        self.assertIn(" %", tip())

    def test_any_number_of_micro_batches_and_devices_is_shown(self):
        self.open("many")
        self.assertIn("200000", BROWSER.evaluate("document.querySelector('table').textContent"))
        self.assertEqual(BROWSER.evaluate("document.querySelectorAll('svg.bars rect').length"), 2000 * 65)

    def test_the_names_of_many_devices_do_not_touch_one_another(self):
        self.open("many")
        tops = BROWSER.evaluate("[...document.querySelectorAll('svg.bars text')].map(name => name.getBBox().y)")
        self.assertGreater(min(after - before for before, after in zip(tops, tops[1:])), 12)
        self.assertGreaterEqual(tops[0], BROWSER.evaluate("document.querySelector('svg.bars').viewBox.baseVal.y"))

    def test_the_last_step_under_a_curve_is_not_cut(self):
        self.open("steps")
        ends = BROWSER.evaluate("[...document.querySelectorAll('.charts svg text')].map(t => [t.textContent, t.getBBox().x + t.getBBox().width])")
        self.assertIn("3000", [text for text, _ in ends])
        self.assertLessEqual(max(end for _, end in ends), 480)

    def test_curves_on_one_another_show_the_colours_of_all(self):
        self.open("steps")
        curves = BROWSER.evaluate("[...document.querySelectorAll('.charts path.curve')].map(c =>"
                                  " [c.getAttribute('stroke-dasharray'), Number(c.getAttribute('stroke-dashoffset'))])")
        self.assertEqual(curves, [["6 6", 0], ["6 6", -6]])

    def test_minutes_and_hours_are_set_right_as_numbers_are(self):
        self.open("steps")
        cells = BROWSER.evaluate("[...document.querySelectorAll('td.number')].map(cell => cell.textContent)")
        self.assertIn("1 min 40 s", cells)
        self.assertIn("1 h 42 min", cells)

    def test_several_runs_share_one_time_axis(self):
        self.open("several")
        panels = BROWSER.evaluate("[...document.querySelectorAll('.panel h3')].map(h => h.firstChild.data)")
        self.assertEqual(panels, ["slimpipe: predicted", "slimpipe: step 10", "1f1b: predicted", "gpipe: predicted"])
        first = [BROWSER.evaluate(f"penstock.where({p}, 0, 0).left") for p in range(4)]
        self.assertEqual(len(set(first)), 1)

    def test_the_pointer_on_the_name_of_a_rank_says_who_is_in_its_groups(self):
        self.open("ranks")
        left, top, _ = canvas_corner(2)
        box = BROWSER.evaluate("penstock.where(2, 5, 0)")
        BROWSER.mouse("mouseMoved", left + 20, top + box["y"] + 5)
        self.assertIn("rank 5: t1 d0 p1", tip())
        for part in ("tensor group\twith rank 4", "replica group\twith rank 7", "pipeline group\twith rank 1"):
            self.assertIn(part, tip())
        BROWSER.mouse("mouseMoved", *point_of(2, 5, 1))
        self.assertIn("rank 5: t1 d0 p1, ", tip())
        first = [BROWSER.evaluate(f"penstock.where({p}, 0, 0).left") for p in range(3)]
        self.assertEqual(len(set(first)), 1)

    def test_the_names_of_ranks_fit_beside_the_bars_of_their_idle_time(self):
        self.open("ranks")
        names = "[...document.querySelectorAll('svg.bars text')]"
        self.assertIn("rank 5: t1 d0 p1", BROWSER.evaluate(names + ".map(name => name.textContent)"))
        self.assertGreaterEqual(BROWSER.evaluate(f"Math.min(...{names}.map(name => name.getBBox().x))"), 0)

    def test_markup_in_any_text_stays_text(self):
        self.open("hostile")
        self.assertIsNone(BROWSER.evaluate("window.hacked || null"))
        self.assertEqual(BROWSER.evaluate("document.querySelectorAll('img, iframe, object').length"), 0)
        self.assertEqual(BROWSER.evaluate("document.scripts.length"), 2)
        self.assertIn("</script><script>window.hacked=1</script>", BROWSER.evaluate("document.title"))
        text = BROWSER.evaluate("document.body.innerText")
        self.assertGreater(text.count("<img src=x onerror="), 15)
        BROWSER.mouse("mouseMoved", *point_of(1, 0, 0))
        self.assertIn("0F0.0", tip())
        self.assertIsNone(BROWSER.evaluate("window.hacked || null"))

    def test_a_report_without_runs_opens(self):
        self.open("empty")
        self.assertIn("Nothing yet", BROWSER.evaluate("document.body.innerText"))


def take_pictures(folder):
    """Screenshots for people to look at."""
    os.makedirs(folder, exist_ok=True)
    for name in ("small", "large", "shares", "several", "charts", "hostile"):
        for dark in (False, True):
            BROWSER.dark(dark)
            BROWSER.open(os.path.join(FOLDER, name + ".html"))
            BROWSER.settle()
            BROWSER.picture(os.path.join(folder, name + ("-dark" if dark else "") + ".png"))


def main():
    global FOLDER, BROWSER
    path = devtools.find_chromium()
    if not path:
        print("SKIPPED: no Chromium here, so nobody has looked at the reports; enable it with: "
              "apt-get install chromium")
        return 77
    with tempfile.TemporaryDirectory(prefix="penstock-reports-") as FOLDER:
        if os.spawnv(os.P_WAIT, sys.argv[1], [sys.argv[1], FOLDER]) != 0:
            return 1
        with devtools.Browser(path) as BROWSER:
            result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
            if len(sys.argv) > 2:
                take_pictures(sys.argv[2])
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
