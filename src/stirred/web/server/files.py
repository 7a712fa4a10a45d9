"""Scripts and styles: a fixed list of files of the program."""

import json
from functools import cache
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
OWN = {
    "workbench.css": ("stirred.web", "static/workbench.css"),
    "icon.svg": ("stirred.web", "static/icon.svg"),
    "workbench.js": ("stirred.web", "static/workbench.js"),
    "calculators.js": ("stirred.web", "static/calculators.js"),
    "report.css": ("stirred.report", "templates/report.css"),
    "report.js": ("stirred.report", "templates/report.js"),
    "card.css": ("stirred.spec.card", "templates/card.css"),
}
LOCALE = {
    "decimal": ".",
    "thousands": ",",
    "grouping": [3],
    "currency": ["", ""],
    "percent": "%",
    "minus": "−",
}


def static(request: Request) -> Response:
    """Return one of the listed files; look up no other name."""
    name = str(request.path_params["name"])
    if name not in OWN:
        raise HTTPException(404)
    kind = KINDS["." + name.rpartition(".")[2]]
    return Response(_content(name), media_type=kind, headers={"cache-control": "private, max-age=3600"})


@cache
def _content(name: str) -> bytes:
    package, place = OWN[name]
    content = files(package).joinpath(place).read_bytes()
    if name == "report.js":
        content = f"const locale = {json.dumps(LOCALE)};\n".encode() + content
    return content
