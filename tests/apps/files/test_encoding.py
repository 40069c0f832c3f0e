"""Facts about encodings.

Every text is read right, or what it was read as is told with its remedy.
"""

import pytest
from read_files import read

from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.text_encoding import encoding_of, is_text, text_of

TEXTS = {
    "German": (
        "Kunde: Guten Tag, ich möchte gern mein Paket zurückschicken, es ist beschädigt.\n"
        "Beraterin: Natürlich, ich prüfe das für Sie.\n",
        "cp1252 iso8859_1 mac_roman cp850",
    ),
    "French": (
        "Cliente: Bonjour, je n’ai pas reçu ma commande, elle était prévue à Noël.\n"
        "Conseil: Très bien, pouvez-vous me donner votre numéro ?\n",
        "cp1252 mac_roman",
    ),
    "Spanish": (
        "Cliente: Hola, ¿dónde está mi pedido? No llegó mañana.\n"
        "Tienda: Buenas noches, ¿me da el número? El señor Núñez lo revisará.\n",
        "cp1252 iso8859_15",
    ),
    "Polish": (
        "Klient: Dzień dobry, gdzie jest moja paczka? Zamówiłem ją tydzień temu.\n"
        "Sklep: Proszę podać numer zamówienia. Jeśli się zgubiła, wyślemy nową.\n",
        "cp1250 iso8859_2",
    ),
    "Czech": (
        "Zákazník: Dobrý den, kde je můj balík? Objednal jsem ho minulý týden.\n"
        "Obchod: Prosím, řekněte mi číslo objednávky.\n",
        "cp1250",
    ),
    "Turkish": (
        "Müşteri: Merhaba, siparişim nerede? Geçen hafta ısmarladım, hâlâ gelmedi.\n"
        "Mağaza: Sipariş numaranızı söyler misiniz? Şimdi bakıyorum.\n",
        "cp1254 iso8859_9",
    ),
    "Russian": (
        "Клиент: Здравствуйте, где мой заказ? Он не пришёл.\n"
        "Оператор: Добрый день, назовите номер заказа.\n",
        "cp1251 koi8_r cp866 iso8859_5",
    ),
    "Greek": (
        "Πελάτης: Καλημέρα, πού είναι το δέμα μου; Δεν ήρθε ακόμα.\n"
        "Εταιρεία: Παρακαλώ πείτε μου τον αριθμό.\n",
        "cp1253 iso8859_7",
    ),
    "Hebrew": (
        "לקוח: שלום, איפה ההזמנה שלי? היא לא הגיעה.\nנציג: שלום, מה מספר ההזמנה בבקשה?\n",
        "cp1255",
    ),
    "Arabic": (
        "العميل: مرحبا، لم يصل طلبي حتى الآن.\nالموظف: ما هو رقم الطلب من فضلك؟\n",
        "cp1256",
    ),
    "Japanese": (
        "お客様: こんにちは、荷物がまだ届いていません。注文番号は四四一一です。\n"
        "店: 申し訳ございません。確認いたしますので少々お待ちください。\n",
        "cp932 euc_jp",
    ),
    "Chinese": (
        "客服: 您好，请问有什么可以帮您？\n"
        "顾客: 我的包裹还没有到，单号四四一一，麻烦帮我查一下。\n",
        "gb18030",
    ),
    "Chinese, Taiwan": (
        "客服: 您好，請問有什麼可以幫您？\n"
        "顧客: 我的包裹還沒有到，單號四四一一，麻煩幫我查一下。\n",
        "big5",
    ),
    "Korean": (
        "고객: 안녕하세요, 제 소포가 아직 도착하지 않았어요.\n"
        "상담원: 죄송합니다. 주문 번호를 말씀해 주시겠어요?\n",
        "cp949",
    ),
}


def text_and_notes(path, content):
    """Return the text of bytes, and what was noted of them with its severity."""
    path.write_bytes(content)
    notes = Notes()
    with text_of(path, encoding_of(path, notes)) as stream:
        text = stream.read()
    return text.removeprefix("\ufeff"), [
        (note.severity, note.message) for note in notes.problems(str(path))
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
@pytest.mark.parametrize("language", TEXTS)
def test_unicode_is_read_with_and_without_its_mark(tmp_path, language, encoding):
    text, _ = TEXTS[language]
    result, notes = text_and_notes(tmp_path / "a.txt", text.encode(encoding))
    assert result == text
    assert [severity for severity, _ in notes] == ([] if "8" in encoding else ["note"])


@pytest.mark.parametrize(
    ("language", "encoding"),
    [(name, encoding) for name, (_, names) in TEXTS.items() for encoding in names.split()],
)
def test_other_encodings_are_read_right_or_doubted(tmp_path, language, encoding):
    text, _ = TEXTS[language]
    result, [(severity, sentence)] = text_and_notes(tmp_path / "a.txt", text.encode(encoding))
    assert result == text or (language, encoding) == ("Polish", "cp1250")
    assert severity == "guess"
    assert "save it as UTF-8" in sentence


@pytest.mark.parametrize(
    "language", ["Japanese", "Chinese", "Chinese, Taiwan", "Korean", "Russian", "Arabic"]
)
def test_other_scripts_are_read_right(tmp_path, language):
    text, names = TEXTS[language]
    for encoding in names.split():
        assert text_and_notes(tmp_path / "a.txt", text.encode(encoding))[0] == text


def test_the_whole_file_decides(tmp_path):
    plain = "Agent: Hi\n" * 20_000  # far more than a block
    text = plain + TEXTS["Russian"][0]
    result, notes = text_and_notes(tmp_path / "a.txt", text.encode("cp1251"))
    assert result == text
    assert notes[0][1].startswith("read as cp1251")
    assert text_and_notes(tmp_path / "a.txt", text.encode()) == (text, [])


def test_damaged_utf8_stays_utf8_and_shows_its_lines(tmp_path):
    lines = TEXTS["Czech"][0].encode().splitlines()
    result, notes = text_and_notes(tmp_path / "a.txt", b"\n".join([*lines, b"caf\xe9", *lines]))
    assert [is_text(line) for line in result.splitlines()] == [True, True, False, True, True]
    assert notes == []


def test_few_letters_are_a_guess_of_western_europe(tmp_path):
    result, [(severity, sentence)] = text_and_notes(
        tmp_path / "a.txt", "Ann: café\n".encode("cp1252")
    )
    assert (result, severity) == ("Ann: café\n", "guess")
    assert '"café"' in sentence


@pytest.mark.parametrize(
    "text",
    [
        "Ann: Hi\0\n" + "Bob: a longer line of text, as people write them\n" * 20,
        "Ana: \x1b[31mÍ tan\x1b[0m\nBo: \x1b(Só\n",
    ],
    ids=["a stray NUL", "a colour of a terminal"],
)
def test_odd_letters_make_utf8_no_other_encoding(tmp_path, text):
    assert text_and_notes(tmp_path / "a.txt", text.encode()) == (text, [])


@pytest.mark.parametrize(
    ("encoding", "language"),
    [("cp932", "Japanese"), ("gb18030", "Chinese"), ("utf-16-le", "Korean")],
)
def test_tables_transcripts_and_captions_are_read_alike(tmp_path, encoding, language):
    turns = [line.split(": ") for line in TEXTS[language][0].splitlines()]
    cues = "".join(
        f"00:0{number}.000 --> 00:0{number}.900\n<v {who}>{text}\n\n"
        for number, (who, text) in enumerate(turns)
    )
    rows = "".join(f'7,"{who}","{text}"\n' for who, text in turns)
    files = {
        "7.txt": TEXTS[language][0],
        "7.vtt": f"WEBVTT\n\n{cues}",
        "7.csv": f"id,role,text\n{rows}",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode(encoding))
        (dialogue,), remarks = read(tmp_path / name, tmp_path, roles="*=user")
        assert [turn.content for turn in dialogue.turns] == [text for _, text in turns]
        assert "read as" in remarks
