"""Texts of mail and of help desks.

What a person wrote, without markup, quoted earlier mail and signatures.
"""

import re
from html import unescape
from itertools import takewhile

_BLOCKS = (
    "p|div|br|hr|table|tr|ul|ol|li|blockquote|h[1-6]|pre|section|article|header|footer|body|dt|dd|"
    "address"
)
_TAG = re.compile(
    rf"<({_BLOCKS}|span|b|i|u|strong|em|a|img|td|font|script|style)(?:\s[^<>]*)?/?>", re.I
)
_EDGE = re.compile(rf"</?(?:{_BLOCKS})\b", re.I)
# A "<" that begins no tag, as in "1 < 2", "<jo@x.org>" and "<https://x.org>".
_STRAY = re.compile(
    r"<(?!/?[a-z][\w:-]*(?:[\s/>]|$)|!--|!\[|!doctype|\?)|<(?=https?:|mailto:)", re.I
)
_HIDDEN = (
    "script, style, title, template, svg, [hidden], [style*='display:none'], "
    "[style*='display: none']"
)
_QUOTES = (
    "blockquote, .gmail_attr, .gmail_quote:not(:has(blockquote)), .yahoo_quoted, .moz-cite-prefix"
)
# what follows is a quote
_OUTLOOK = re.compile(r"<\w+[^<>]*\bid=.?(?:x_)?(?:appendonsend|divRplyFwdMsg)\b")
QUOTING = re.compile("quote|moz-cite|appendonsend|divRplyFwdMsg")

# Parsers of replies (mail-parser-reply, email_reply_parser) miss Spanish, Portuguese and Dutch
# introductions; the first removes whatever follows "- one" or "From: Berlin", and takes seconds for
# some texts.
_QUOTED = re.compile(r"\s*(?:>|##-.*-##\s*$)")
_OPENING = re.compile(r"(?:On|Am|Le|El|Il|Em|No dia|Op|Den|Dnia)\b|[^<]{0,99}<\S{1,99}@")
_WROTE = re.compile(
    r".*\b(?:wrote|schrieb|écrit|escribió|scritto|escreveu|schreef|skrev|napisał)\b.*:$"
    r"|.*\d[:.h]\d\d.*> ?[:：]$"
)
_MOMENT = re.compile(r"\d[:.h]\d\d|@")
_FROM = re.compile(r"[\s*_]*(?:From|Von|De|Da|Van|Fra|Från|Od)[\s*_]*:")
_SUBJECT = re.compile(
    r"^[\s*_]*(?:Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp|[EÄ]mne|Temat)[\s*_]*:",
    re.M,
)
_ABOVE = re.compile(
    r"[_-]{5,}|-{3,}[^-]+-{3,}|(?:begin|anfang|début|inicio|inizio|início)\b.{5,40}:", re.I
)
_CLOSING = re.compile(
    r"(?:\S+ ){0,3}(?:regards|wishes|sincerely|mfg|gr(?:ü|ue)(?:ß|ss)en?|cordialement|salutations|"
    r"saludos?|atentamente|"
    r"saluti|atenciosamente|cumprimentos|groet(?:en)?)(?:,(?: \S+){1,3}|\W*)"
    r"|(?:sent|gesendet|envoyé|enviado|inviato|verzonden) "
    r"(?:from|via|von|mit|de|depuis|desde|do|dal?|vanaf|met) "
    r"(?:m(?:y|i|on|eu|io|ijn)|mein\w*|ip\w+|outlook|yahoo|samsung|android|gmail|mail)\b[^,]{0,60}"
    r"|von mein\w* .{1,30} gesendet\W*|(?:get|télécharger|obtener|scarica|ottieni|obter|download) "
    r"outlook .{0,60}",
    re.I,
)
_SAID = re.compile(r".{81}|.*\?|(?:\S+ ){3,}.*[.!…]$")  # a line that is not of a signature
_LONGEST_ENDING = 15  # lines


def has_markup(text: str) -> bool:
    """Return whether a text has known tags of HTML, closed where they need it."""
    tags = {tag.lower() for tag in _TAG.findall(text)}
    return any(tag in ("br", "img", "hr") or f"</{tag}" in text.lower() for tag in tags)


def plain_text(markup: str) -> str:
    """Return the text of HTML, a line for each block; lines of quoted mail begin with ``>``.

    A text without any known tag keeps its lines; only its entities are read.
    """
    if not _TAG.search(markup):
        return unescape(markup).replace("\xa0", " ")
    from selectolax.lexbor import LexborHTMLParser

    spaced = markup if "<pre" in markup.lower() else re.sub(r"[ \t\r\n\f]+", " ", markup)
    edged = _EDGE.sub(
        r"\n\g<0>", _OUTLOOK.sub(r"<blockquote>\g<0>", re.sub("<t[dh]", r" \g<0>", spaced))
    )
    tree = LexborHTMLParser(_STRAY.sub("&lt;", edged))
    for node in tree.css(_HIDDEN):
        node.decompose()
    for node in reversed(tree.css(_QUOTES)):  # inner ones first
        node.replace_with("".join(f"\n> {line}" for line in filled_lines(node.text())) + "\n")
    return "\n".join(filled_lines(tree.body.text() if tree.body else ""))


def filled_lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return list(filter(None, map(str.strip, text.replace("\xa0", " ").splitlines())))


def unquoted(text: str) -> str:
    """Return a mail without quoted earlier mail and what introduces it; a quote alone stays."""
    lines = text.splitlines()
    kept: list[str] = []
    place = 0
    while place < len(lines):
        length, cuts = _introduction(lines, place)
        below = next(filter(str.strip, lines[place + length : place + length + 5]), "")
        if length and cuts and not _QUOTED.match(below) and any(map(str.strip, kept)):
            break
        # the fields of the message itself, or a quote with its marks
        is_left = length and (cuts or _QUOTED.match(below))
        if not (is_left or _QUOTED.match(lines[place])):
            kept.append(lines[place])
        place += length if is_left else 1
    if len(kept) == len(lines):
        return text
    while kept and (not kept[-1].strip() or _ABOVE.fullmatch(kept[-1].strip())):
        kept.pop()
    return "\n".join(kept).strip() or "\n".join(line.lstrip("> ") for line in lines).strip()


def _introduction(lines: list[str], place: int) -> tuple[int, bool]:
    """Return the number of lines that introduce earlier mail, and whether all below them is so."""
    block = list(takewhile(str.strip, lines[place : place + 8]))
    for length in range(1, min(3, len(block)) + 1 if _OPENING.match(lines[place]) else 0):
        line = " ".join(block[:length]).strip()
        if len(line) < 300 and _WROTE.match(line):
            return length, bool(_MOMENT.search(line))
    fields = block and _FROM.match(block[0]) and _SUBJECT.search("\n".join(block))
    return (len(block), True) if fields else (0, False)


def unsigned(text: str) -> str:
    """Return a mail without the signature at its end."""
    lines = [line.strip() for line in text.splitlines()]
    for place in range(max(1, len(lines) - _LONGEST_ENDING), len(lines)):
        signs = _CLOSING.fullmatch(lines[place]) and not any(map(_SAID.match, lines[place + 1 :]))
        if (signs or lines[place] == "--") and any(lines[:place]):
            return "\n".join(text.splitlines()[:place]).strip()
    return text
