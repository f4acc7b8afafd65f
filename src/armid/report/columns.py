"""The page about a drafted mapping: what the columns are, and the file."""

from __future__ import annotations

from armid.columns.draft import MappingDraft
from armid.page import Paragraph, Report, Section
from armid.report.judged import judged_page


def columns_report(draft: MappingDraft) -> Report:
    """Everything the page shows."""
    return judged_page(
        draft,
        f"{draft.file.name}: what the columns mean",
        f"for {draft.robot.name}",
        Section("columns", "Columns", draft._tables()),
        Section("file", "Mapping file", (Paragraph(draft.text(), "code"),)),
    )
