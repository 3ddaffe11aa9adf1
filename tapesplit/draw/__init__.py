"""Views of a plan: text, pictures and a report, all derived from the plan's public numbers on demand."""

from tapesplit.draw.explain import advice, decisions
from tapesplit.draw.files import draw_split
from tapesplit.draw.html import notebook_html, report_html, write_report
from tapesplit.draw.text import describe

__all__ = [
    "advice",
    "decisions",
    "describe",
    "draw_split",
    "notebook_html",
    "report_html",
    "write_report",
]
