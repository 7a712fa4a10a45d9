"""How the pages are built: MyST Markdown, and an API reference from the docstrings; nothing is fetched."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

project = "Stirred"
author = "The Stirred contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["images"]
html_theme = "furo"  # dark, contents of the page, readable on a phone; it fetches nothing
html_title = "Stirred"
html_show_sphinx = False
html_math_renderer = "mathml"  # browsers show MathML by themselves: no script is fetched
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": "Config"}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"(``[^`]+``)")
FORMULA = re.compile(r"\$([^$\n]+)\$")


def setup(app):
    app.connect("source-read", outside_links)
    app.connect("autodoc-process-docstring", formulas)
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))


def outside_links(_app, page, source):
    """Files of the repository beside docs/ (proofs, examples) are copied into the build and linked as downloads."""
    folder = (HERE / page).parent

    def downloaded(link):
        target = (folder / link[2]).resolve()
        if target.is_relative_to(HERE) or not target.is_file():
            return link[0]
        return f"{{download}}`{link[1].replace('`', '')} <{link[2]}>`"

    source[0] = OUTSIDE.sub(downloaded, source[0])


def formulas(_app, _what, _name, _obj, _options, lines):
    """Docstrings write formulas between dollars, and bars as they are; reStructuredText wants roles and escapes."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[number] = "".join(
                part if part.startswith("``") else with_roles(part) for part in CODE.split(line)
            )


def with_roles(text):
    parts = FORMULA.split(text)  # every second part is a formula
    return "".join(
        f":math:`{part}`" if odd % 2 else part.replace("|", r"\|") for odd, part in enumerate(parts)
    )


def inline_formula(page, node):
    page.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def block_formula(page, node):
    page.body.append(f"<div>{mathml(node.astext(), block=True)}</div>")
    raise nodes.SkipNode


def mathml(text, *, block):
    """A formula as MathML; one that docutils cannot translate stops the build."""
    try:
        return latex2mathml.tex2mathml(text.strip(), as_block=block)
    except MathError as problem:
        raise ValueError(f"cannot show the formula {text!r}: {problem}") from problem
