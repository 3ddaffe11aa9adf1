"""Views of plans and width profiles: text, pictures and a report, derived from public numbers on demand."""

from tapesplit.draw.advise import advice
from tapesplit.draw.explain import decisions
from tapesplit.draw.files import draw_profile, draw_split
from tapesplit.draw.html import notebook_html, profile_html, report_html, write_report
from tapesplit.draw.text import describe

__all__ = [
    "advice",
    "decisions",
    "describe",
    "draw_profile",
    "draw_split",
    "notebook_html",
    "profile_html",
    "report_html",
    "write_report",
]
