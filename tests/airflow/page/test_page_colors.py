"""The colours of the pages can be read in both themes: contrast as WCAG 2 (level AA) asks it."""

import re

import pytest

from airflow_provider_lake.page.rendering import render

# Airflow's own backgrounds, which show through the pages.
BACKGROUNDS = {"light": "#ffffff", "dark": "#161d2d"}
TEXT, EDGE = 4.5, 3.0


def colors(theme):
    """The variables of a theme; the dark ones override the light ones."""
    style = render("start.html", "", connections={}, default_connection="", has_teams=False)
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    return found if theme == "light" else found | dict(re.findall(r"--([\w-]+): (#\w{6})", dark))


def luminance(color):
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("color", ["text", "quiet", "link", "bad"])
def test_text_is_readable_on_the_page_and_on_its_panels(theme, color):
    known = colors(theme)

    assert contrast(known[color], BACKGROUNDS[theme]) >= TEXT
    assert contrast(known[color], known["soft"]) >= TEXT


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("verdict", ["good", "warn", "bad", "none"])
def test_a_verdict_is_readable_on_its_own_background(theme, verdict):
    known = colors(theme)

    assert contrast(known[verdict], known[f"{verdict}-back"]) >= TEXT


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_fields_have_a_visible_edge(theme):
    assert contrast(colors(theme)["edge"], BACKGROUNDS[theme]) >= EDGE


def test_the_two_themes_set_the_same_colors():
    assert colors("light").keys() == colors("dark").keys()
    assert not {*colors("light").items()} & {*colors("dark").items()}
