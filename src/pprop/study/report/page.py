"""A page: sections of sentences, lists, tables and pictures, written as HTML or Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TypeAlias, final

from pprop.study.tables.table import Table, inline_html, inline_markdown, table_html, table_markdown


@final
@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@final
@dataclass(frozen=True)
class Picture:
    """A figure as SVG, with the name of its file, its title, its caption, how to get its rows, and its data as JSON.

    An empty command is not shown.
    """

    name: str
    title: str
    caption: str
    svg: str
    command: str
    data: str = ""


_FIGURES = "figures"

# What a section is made of; a str is a paragraph. What is between backticks is code.
Block: TypeAlias = str | Bullets | Table | Picture


@final
@dataclass(frozen=True)
class Section:
    """A titled part of a page."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        """Its address within the page.

        >>> Section("Time per epoch", ()).anchor
        'time-per-epoch'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@final
@dataclass(frozen=True)
class Page:
    """A title, what is to be read first, and the sections."""

    title: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]


def page_html(page: Page) -> str:
    """Return the page as one HTML file that needs nothing else.

    Examples
    --------
    >>> "<h1>A &amp; B</h1>" in page_html(Page("A & B", ("Hello.",), ()))
    True
    """
    style = files("pprop.study.report").joinpath("page.css").read_text(encoding="utf-8")
    contents = "".join(f'<li><a href="#{part.anchor}">{escape(part.title)}</a></li>' for part in page.sections)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}</title>",
        f"<style>\n{style}</style></head><body>",
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>',
        f"<main><h1>{escape(page.title)}</h1>",
        *_html_blocks(page.lead),
    ]
    for part in page.sections:
        lines.append(f'<section id="{part.anchor}"><h2>{escape(part.title)}</h2>')
        lines.extend(_html_blocks(part.blocks))
        lines.append("</section>")
    return "\n".join([*lines, "</main></body></html>", ""])


def page_markdown(page: Page, folder: str = _FIGURES, contents: bool = True) -> str:
    """Return the page as Markdown, with its pictures as files in a folder beside it; with a list of contents where asked.

    Examples
    --------
    >>> print(page_markdown(Page("Study", (), (Section("Runs", ("None.",)),))))
    # Study
    <BLANKLINE>
    - [Runs](#runs)
    <BLANKLINE>
    ## Runs
    <BLANKLINE>
    None.
    <BLANKLINE>
    """
    lines = [f"# {inline_markdown(page.title)}", "", *_markdown_blocks(page.lead, folder)]
    lines += [f"- [{inline_markdown(part.title)}](#{part.anchor})" for part in page.sections if contents]
    for part in page.sections:
        lines += ["", f"## {inline_markdown(part.title)}", "", *_markdown_blocks(part.blocks, folder)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _html_blocks(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Bullets(items):
                yield f"<ul>{''.join(f'<li>{inline_html(item)}</li>' for item in items)}</ul>"
            case Table():
                yield table_html(block)
            case Picture():
                yield (
                    f'<figure class="picture"><h3>{escape(block.title)}</h3>'
                    f'<div role="img" aria-label="{escape(block.title)}">{inline_svg(block.svg)}</div>'
                    f"<figcaption>{inline_html(block.caption)}<br><code>{escape(block.command)}</code></figcaption></figure>"
                )
            case str():
                yield f"<p>{inline_html(block)}</p>"


def _markdown_blocks(blocks: Sequence[Block], folder: str) -> Iterator[str]:
    for block in blocks:
        match block:
            case Bullets(items):
                yield "\n".join(f"- {inline_markdown(item)}" for item in items)
            case Table():
                yield table_markdown(block)
            case Picture():
                yield f"### {inline_markdown(block.title)}\n\n![{block.name}]({folder}/{block.name}.svg)\n"
                yield f"{inline_markdown(block.caption)}\n\n    {block.command}".rstrip()
            case str():
                yield inline_markdown(block)
        yield ""


def inline_svg(text: str) -> str:
    """Return an SVG file as an element of a page: without what comes before it, larger, and free to become narrower.

    >>> inline_svg('<?xml version="1.0"?><!DOCTYPE svg><svg width="100pt" height="50pt" viewBox="0 0 100 50"></svg>')
    '<svg width="130pt" viewBox="0 0 100 50"></svg>'
    """
    head, mark, rest = text[text.index("<svg") :].strip().partition(">")
    head = re.sub(r' height="[^"]*"', "", head)
    # print's sizes are small on a screen
    return re.sub(r' width="([\d.]+)pt"', lambda found: f' width="{1.3 * float(found[1]):g}pt"', head) + mark + rest


def page_files(page: Page) -> dict[str, str]:
    """Return the content of a report's files by their names, the HTML page first.

    Examples
    --------
    >>> list(page_files(Page("Study", (), ())))
    ['report.html', 'report.md']
    """
    files = {"report.html": page_html(page), "report.md": page_markdown(page)}
    for picture in (block for section in page.sections for block in section.blocks if isinstance(block, Picture)):
        files |= {f"{_FIGURES}/{picture.name}.svg": picture.svg, f"{_FIGURES}/{picture.name}.json": picture.data}
    return files
