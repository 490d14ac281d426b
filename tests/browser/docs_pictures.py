#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/reading_a_report.md: docs_pictures.py MAKE_REPORTS docs/pictures."""
import os
import subprocess
import sys
import tempfile

import devtools

MARGIN = 6


def box_of(browser, first, last=None):
    """Where the elements from one to another are on the page."""
    corner = "(e => { const r = e.getBoundingClientRect(); return [r.left + scrollX, r.top + scrollY, r.right, r.bottom + scrollY]; })"
    a, b = (browser.evaluate(corner + f"({expression})") for expression in (first, last or first))
    left, top, right, bottom = min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
    return [left - MARGIN, top - MARGIN, right - left + 2 * MARGIN, bottom - top + 2 * MARGIN]


def heading(text):
    return f"[...document.querySelectorAll('h2')].find(h => h.textContent === '{text}').parentNode"


def show_tip(browser, panel, device, token):
    browser.evaluate(f"document.querySelectorAll('.panel')[{panel}].scrollIntoView()")
    browser.evaluate("scrollBy(0, -120)")
    canvas = f"document.querySelectorAll('canvas.overlay')[{panel}].getBoundingClientRect()"
    x, y = browser.evaluate(f"(() => {{ const r = {canvas}, b = penstock.where({panel}, {device}, "
                            f"penstock.find({panel}, {device}, '{token}')); "
                            "return [r.left + (b.left + b.right) / 2, r.top + b.y + b.height / 2]; })()")
    browser.mouse("mouseMoved", x, y)


def main():
    make_reports, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as reports, devtools.Browser(devtools.find_chromium(), width=1000) as browser:
        subprocess.run([make_reports, reports], check=True)
        browser.open(os.path.join(reports, "small.html"))
        browser.settle()

        def take(name, box):
            browser.picture(os.path.join(folder, name + ".png"), clip=box)

        take("report_timeline", box_of(browser, "document.querySelector('.controls')", "document.querySelectorAll('.panel')[0]"))
        take("report_idle", box_of(browser, heading("Idle time by cause")))
        take("report_difference", box_of(browser, heading("Predicted and measured")))
        take("report_curves", box_of(browser, heading("Over the steps")))
        show_tip(browser, 1, 1, "1B0.2")
        take("report_tip", box_of(browser, "document.querySelectorAll('.panel')[1]"))
        browser.open(os.path.join(reports, "several.html"))
        browser.dark(True)
        browser.evaluate("['transfers', 'memory', 'difference'].forEach(f => document.querySelector(`[data-field=${f}] input`).click())")
        browser.settle()
        take("report_several", box_of(browser, "document.querySelectorAll('.panel')[0]", "document.querySelectorAll('.panel')[3]"))


if __name__ == "__main__":
    main()
