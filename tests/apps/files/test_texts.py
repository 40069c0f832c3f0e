"""Texts lose markup, quoted mail, signatures and what a speaker repeats, and nothing else."""

import pytest

from hf_dialemb.apps.files.cleaning import Cleaning
from hf_dialemb.apps.files.markup import has_markup, plain_text

pytest.importorskip("selectolax")

QUOTED = ["quoted earlier mail left 1 turn (corpus show --raw shows it)"]
FIELDS = {
    "en": (
        "From: Bob <bob@example.org>",
        "Sent: Saturday, 1 February 2025 10:00",
        "To: Desk",
        "Subject: Parcel",
    ),
    "de": (
        "Von: Bob <bob@example.org>",
        "Gesendet: Samstag, 1. Februar 2025 10:00",
        "An: Desk",
        "Betreff: Paket",
    ),
    "fr": (
        "De : Bob <bob@example.org>",
        "Envoyé : samedi 1 février 2025 10:00",
        "À : Desk",
        "Objet : Colis",
    ),
    "es": (
        "De: Bob <bob@example.org>",
        "Enviado: sábado, 1 de febrero de 2025 10:00",
        "Para: Desk",
        "Asunto: Paquete",
    ),
    "it": (
        "Da: Bob <bob@example.org>",
        "Inviato: sabato 1 febbraio 2025 10:00",
        "A: Desk",
        "Oggetto: Pacco",
    ),
    "pt": (
        "De: Bob <bob@example.org>",
        "Enviado: sábado, 1 de fevereiro de 2025",
        "Para: Desk",
        "Assunto: Pacote",
    ),
    "sv": (
        "Från: Bob <bob@example.org>",
        "Skickat: den 1 februari 2025 10:00",
        "Till: Desk",
        "Ämne: Paket",
    ),
    "nl": (
        "Van: Bob <bob@example.org>",
        "Verzonden: zaterdag 1 februari 2025",
        "Aan: Desk",
        "Onderwerp: Pakket",
    ),
}
WROTE = (
    "On Sat, 1 Feb 2025 at 10:00, Bob wrote:",
    "On Sat, Feb 1, 2025 at 10:00 AM Bob Longfellow-Smithson <bob.longfellow@example.org>\nwrote:",
    "On Saturday, February 1, 2025, 10:00:00 AM GMT+1, Bob <bob@example.org> wrote:",
    "Am Sa., 1. Feb. 2025 um 10:00 Uhr schrieb Bob <bob@example.org>:",
    "Bob <bob@example.org> schrieb am Sa., 1. Feb. 2025, 10:00:",
    "Le sam. 1 févr. 2025 à 10:00, Bob <bob@example.org> a écrit :",
    "El sáb, 1 feb 2025 a las 10:00, Bob (<bob@example.org>) escribió:",
    "Il giorno sab 1 feb 2025 alle ore 10:00 Bob <bob@example.org>\nha scritto:",
    "Em sáb., 1 de fev. de 2025 às 10:00, Bob <bob@example.org> escreveu:",
    "Op za 1 feb 2025 om 10:00 schreef Bob <bob@example.org>:",
    "Den lør. 1. feb. 2025 kl. 10.00 skrev Bob <bob@example.org>:",
    "2025年2月1日(土) 10:00 Bob <bob@example.org>:",
)
SIGNATURES = (
    "Kind regards,\nPriya",
    "Best regards\nOmar Feldgate\nCustomer Care Team\nTel. 020 7946 0958",
    "Kind regards, Priya Rao",
    "-- \nPriya\nAcme Ltd, 5 Main Street, Springfield",
    "Sent from my iPhone",
    "Get Outlook for iOS<https://aka.ms/o0ukef>",
    "Mit freundlichen Grüßen\nPriya Rao",
    "Viele Grüße\nPriya",
    "Von meinem iPhone gesendet",
    "Cordialement,\nPriya",
    "Envoyé de mon iPhone",
    "Saludos,\nPriya",
    "Cordiali saluti\nPriya",
    "Inviato da iPhone",
    "Atenciosamente,\nPriya",
    "Met vriendelijke groet,\nPriya",
)
# Much of this looks like parts of mail, and is what somebody says.
SAID = (
    "Thanks, that helped. Best regards to Priya.",
    "- one\n- two\n- three",
    "From: Berlin\nTo: Munich\nDate: 3 May\nTwo adults, please.",
    "De: Madrid\nPara: Lisboa\nFecha: 3 mayo",
    "Thanks,\nbut my card was stolen on the way home.",
    "On Monday Bob wrote: I am ill. What now?",
    "On Monday Bob wrote:\nI am ill",
    "a < 5 and b > 3 it fails.  Two  spaces\r\n\r\n\r\nstay ",
    "Best regards",
    "Regards,\nPriya",
    "Hello\nKind regards,\nPriya\nPS: the box was open when it came.",
    "Prices:\n-----\n5 euros",
    "El cliente escribió:\nno funciona",
    "Subject: printer\nIt does not print",
    "Warning: low disk, mail fails",
    "Sent from Berlin last week, and it never came.",
    "Here it is\n\nSent from my desk, which is easier than by phone.",
)


def clean(
    *contents: str, mail: bool = True, markup: bool = False, raw: bool = False
) -> tuple[list[str], list[str]]:
    texts = Cleaning(raw)
    messages = [{"role": "agent", "content": content, "markup": markup} for content in contents]
    for message in messages:
        texts.see(message, mail)
    return [texts.text(message, mail) for message in messages], texts.remarks()


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<p>My bill&nbsp;is <b>wrong</b></p><br/><img src='data:image/png;base64,AAAA'>",
            "My bill is wrong",
        ),
        ("a &lt;b&gt; <script>x</script>1 < 2 and 3 > 2", "a <b> 1 < 2 and 3 > 2"),
        (
            "<p>first</p>\n\n  <p>second\n line</p>third<br>fourth",
            "first\nsecond line\nthird\nfourth",
        ),
        (
            "Mail me <jo@example.org> <i>or</i> <https://example.org>",
            "Mail me <jo@example.org> or <https://example.org>",
        ),
        ("Mail me <jo@example.org>.\nAT&amp;T", "Mail me <jo@example.org>.\nAT&T"),
        ("<b>AT&amp;T</b> &amp;lt; caf&eacute; &#39;x&#39;", "AT&T &lt; café 'x'"),
        (
            "<table><tr><td>Order</td><td>55</td></tr><tr><td>Price</td><td>5</td></tr></table>",
            "Order 55\nPrice 5",
        ),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        (
            "<style>p {color: red}</style><!--[if mso]><xml>1</xml><![endif]--><p>It is "
            "55.<o:p></o:p></p>",
            "It is 55.",
        ),
        (
            "<div style='display:none'>preview</div><div class='zd-comment' dir='auto'>Hi</div>",
            "Hi",
        ),
        ("<p><img src='cid:1'></p>", ""),
        ("<div>Hi<blockquote>old<br>er</blockquote>new</div>", "Hi\n> old\n> er\nnew"),
    ],
)
def test_markup_becomes_text(markup, text):
    assert plain_text(markup) == text


@pytest.mark.parametrize(
    "quote",
    [
        "<blockquote>On Mon, Rosa wrote: My bill is wrong</blockquote>",
        '<div class="gmail_quote">On Sun, 23 Feb 2025 at 12:06, Nina wrote:<br><blockquote>A '
        "cab</blockquote></div>",
        '<div class="gmail_quote"><div class="gmail_attr">On Sun Nina wrote:</div><blockquote>A '
        "cab</blockquote></div>",
        '<div class="gmail_quote">A cab</div>',
        '<div class="moz-cite-prefix">Den 1.2. skrev Nina:</div><blockquote type="cite">A '
        "cab</blockquote>",
        '<div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>Od:</b> Nina<br><b>Do:</b> '
        "us</div><p>A cab</p>",
        f"<p>{'<br>'.join(FIELDS['de'])}</p><p>A cab</p>",
    ],
)
def test_markup_of_quoted_mail_leaves(quote):
    content = f'<div class="zd-comment"><p>Which number?</p>{quote}</div>'
    for mail in (True,) if quote.startswith("<p>") else (True, False):
        assert clean(content, mail=mail, markup=True) == (["Which number?"], QUOTED)


def test_a_line_of_a_chat_that_begins_like_a_quote_stays():
    assert clean("<p>Then</p><p>&gt; Settings</p>", mail=False, markup=True) == (
        ["Then\n> Settings"],
        [],
    )


@pytest.mark.parametrize("header", WROTE)
@pytest.mark.parametrize(
    "quote", ["\n> It is lost.\n> Soon?", "\n\n> It is lost.", "\n\nIt is lost."]
)
def test_quoted_mail_leaves_with_its_introduction(header, quote):
    assert clean(f"Which number?\n\n{header}{quote}") == (["Which number?"], QUOTED)


@pytest.mark.parametrize(
    "above", ["", "-----Original Message-----\n", f"{'_' * 32}\n", "Begin forwarded message:\n\n"]
)
@pytest.mark.parametrize("language", FIELDS)
def test_mail_below_its_fields_leaves(language, above):
    fields = "\n".join(FIELDS[language])
    for block in (fields, fields.replace("From:", "*From:*").replace("Subject:", "*Subject:*")):
        assert clean(f"Which number?\n\n{above}{block}\n\nIt is lost.\n\nBob")[0] == [
            "Which number?"
        ]


def test_answers_between_and_below_quotes_stay():
    mail = (
        "On 1 Feb 2025, at 10:00, Bob wrote:\n> Which number?\nIt is 55.\n> > And the "
        "street?\nMain street."
    )
    assert clean(mail)[0] == ["It is 55.\nMain street."]


@pytest.mark.parametrize("language", FIELDS)
def test_the_fields_of_a_message_leave_and_its_text_stays(language):
    fields = "\n".join(FIELDS[language])
    assert clean(f"{fields}\n\nIt is lost.\n\n{fields}\n\nWhat is?") == (["It is lost."], QUOTED)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_leaves(signature):
    assert clean(f"Which number?\n\n{signature}") == (
        ["Which number?"],
        ["signatures left 1 turn (corpus show --raw shows it)"],
    )


@pytest.mark.parametrize("text", SAID)
def test_a_mail_without_quotes_and_signature_stays_to_the_character(text):
    assert clean(text) == ([text], [])


def test_what_a_speaker_repeats_at_the_end_leaves():
    end = (
        "\n\nPriya, Acme\nThis message is confidential. If you are not who it is for, delete "
        "it, "
        "and tell us by mail."
    )
    said = [f"Answer {number}" for number in range(3)]
    assert clean(*(f"{text}{end}" for text in said), "Nothing more") == (
        [*said, "Nothing more"],
        ["repeated endings left 3 turns (corpus show --raw shows it)"],
    )


def test_a_message_of_quotes_alone_keeps_them_without_marks():
    cleaned, remarks = clean("> My parcel is lost.\n> Soon?")
    assert cleaned == ["My parcel is lost.\nSoon?"]
    assert remarks == QUOTED


@pytest.mark.parametrize(
    "content", ["<p>Hi</p><blockquote>old</blockquote>", "Hi\n> old\n\nKind regards,\nPriya"]
)
def test_raw_leaves_everything(content):
    assert clean(content, markup=content.startswith("<"), raw=True) == ([content], [])


@pytest.mark.parametrize(
    "content", ["Hi\n> old\n\nKind regards,\nPriya", "a < 5 and b > 3: <jo@x.org>. AT&amp;T <b>"]
)
def test_what_is_neither_mail_nor_markup_stays_to_the_character(content):
    assert clean(content, mail=False) == ([content], [])


@pytest.mark.parametrize(
    ("text", "is_markup"),
    [
        ("<p>Hi</p>", True),
        ("Hi<br>there", True),
        ("a < 5 and b > 3", False),
        ("Mail me <jo@example.org>", False),
        ("AT&amp;T", False),
        ("<b and c>", False),
        ("type <table> and run", False),
    ],
)
def test_markup_has_known_tags_that_are_closed(text, is_markup):
    assert has_markup(text) is is_markup
