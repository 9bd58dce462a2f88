"""Pages for people: the ledger at a glance, served by ``apply-ledger serve`` beside the API.

Everything is rendered here, by Jinja2, over the same reading layer as the API (:mod:`ledger.api.reading`); no page runs
SQL. Without JavaScript every page works; with it, lists go on in place and a run is followed as it happens.

How to add a page:

1. A router in ``<subject>_pages.py``. A page gets :data:`~ledger.dashboard.pages.Maker` and answers with
   ``maker.page(request, "<subject>.html", title=…, current="/<subject>", …)``. What belongs in the address is there:
   filters and cursors are query parameters, so that a link shows everybody the same.
2. Its line in ``ROUTERS`` (:mod:`ledger.dashboard.application`), in ``PAGE_RIGHTS`` (:mod:`ledger.dashboard.rights`),
   and, where people should find it, in ``NAVIGATION`` (:mod:`ledger.dashboard.pages`). A page without rights is refused
   to everybody; the table in ``tests/integration/dashboard`` says a second time who may see what.
3. A template that extends ``base.html`` and takes from ``macros.html`` how times, numbers, states, names, empty lists
   and next pages look. Text of a source, a plan or a destination goes through ``name`` or ``prose``: both show what is
   invisible, cut what is endless and keep its direction to itself. Nothing is ever marked safe.
4. What htmx fetches for a part of a page is the same address: ``maker.page(…, fragment="_<subject>.html")``.

Errors need no code: whatever a page raises below ``ApplyLedgerError`` becomes the page of its status, in the words of
the command line. A form is a POST whose handler takes :data:`~ledger.dashboard.pages.OwnForm`, which refuses one that
did not come from a page of the same session.
"""
