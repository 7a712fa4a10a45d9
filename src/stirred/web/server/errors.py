"""Pages for what cannot be done: what, why and the way out; a fault shows nothing but that it happened."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stirred.errors import MissingExtraError, StirredError
from stirred.web.pages import page
from stirred.web.server.security import RequestRefused


def show_refusal(request: Request, error: Exception) -> Response:
    """Show an error of Stirred; its message names no value of a record."""
    if not isinstance(error, StirredError):
        return show_fault(request, error)
    status = 501 if isinstance(error, MissingExtraError) else 422
    return page(request, "refused.html.j2", title="This cannot be done", error=error, status=status)


def show_not_found(request: Request, error: Exception) -> Response:
    """Show that the workbench has no such address."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    told = StirredError(
        "There is no such page",
        why="the workbench has no page of this address",
        fix="start at the first page",
    )
    return page(request, "refused.html.j2", title="There is no such page", error=told, status=status)


def show_turned_away(request: Request, error: Exception) -> Response:
    """Show that the server refuses a request: too large, or not a form of this workbench."""
    status, words = (error.status, error.words) if isinstance(error, RequestRefused) else (400, "")
    told = StirredError("This was not taken", why=words, fix="go back, and change what is sent")
    return page(request, "refused.html.j2", title="This was not taken", error=told, status=status)


def show_fault(request: Request, error: Exception) -> Response:
    """Show that the program failed, without the message, which may name a value."""
    told = StirredError(
        "A fault of the workbench",
        why=f"it is of the kind {type(error).__name__}; nothing was changed",
        fix="go back and try again; serve.log in the folder of the workbench names the place in the program",
    )
    return page(request, "refused.html.j2", title="A fault", error=told, status=500)
