"""What the synthetic sample corpus says about its ten domains: templates with [one|of|these] choices and {slots}.

The domains share their words on purpose (book, charge, card, reservation, delivery, ticket, desk, and all places and
codes), so that no single word gives a domain away.
"""

from __future__ import annotations

from typing import NamedTuple


class Intent(NamedTuple):
    """What a user wants: how to say it, what the assistant proposes, and how it reports that it is done."""

    goals: tuple[str, ...]
    offer: str
    done: tuple[str, ...]


class Slot(NamedTuple):
    """A slot that only one domain has: how it is asked for, how the user answers, and the values."""

    name: str
    question: str
    answer: str
    values: tuple[str, ...]


class Domain(NamedTuple):
    """A domain: side questions with answers, its own slot, the general slots that it uses, and its intents."""

    questions: tuple[tuple[str, str], ...]
    slot: Slot
    general_slots: tuple[str, ...]
    intents: dict[str, Intent]


def _intent(*goals: str, offer: str, done: tuple[str, ...]) -> Intent:
    return Intent(goals, offer, done)


def _domain(*questions: tuple[str, str], slot: Slot, general_slots: tuple[str, ...], **intents: Intent) -> Domain:
    return Domain(questions, slot, general_slots, intents)


_BOOKED = "[Done|All set|That is arranged], {name}. [Your|The] reference is {code}."
_CHANGED = "[I have changed it|It is changed|That is updated now]. The reference stays {code}."

DOMAINS = {
    "hotel": _domain(
        ("Is there [parking|a restaurant|a pool] for guests?", "[Yes|There is], guests [use it free|pay {amount}]."),
        (
            "Can I leave my [bags|luggage] before check in?",
            "The front desk [keeps them for you|takes them] from {time}.",
        ),
        slot=Slot(
            "nights",
            "How many nights [is that|will you stay]?",
            "That is {nights}.",
            ("one night", "two nights", "four nights"),
        ),
        general_slots=("date", "name", "phone", "people"),
        book_stay=_intent(
            "[I need|I am looking for] somewhere to [sleep|stay] near {place} from {date}.",
            "[Could you|Can you] book [a double|a single|a quiet one] for {nights} at {place}[, please|]?",
            "We arrive on {date} and [want|would like] to stay {nights}, [with breakfast|on a high floor].",
            offer="{place} has [a double|a suite] free for {nights}, {amount} [a night|with breakfast].",
            done=(_BOOKED, "Your [stay|reservation] at {place} is [confirmed|booked]; check in opens at {time}."),
        ),
        change_stay=_intent(
            "I have a reservation at {place} and [must|need to] [leave a day early|stay longer].",
            "The [room we were given|bed in our room] is [too small|too loud], [can we move|is another one free]?",
            offer="I can [move you to another floor|give you a late check out] for {amount}.",
            done=(_CHANGED, "The front desk [knows about it|has your new key] from {time}."),
        ),
    ),
    "restaurant": _domain(
        (
            "Is there [a vegetarian menu|anything without nuts]?",
            "The chef [can do that|has several dishes] for {amount}.",
        ),
        ("Do we have to pay by card[ there|]?", "Cash or card, the [waiter|bill] comes to the table."),
        slot=Slot(
            "cuisine",
            "What [would you like to eat|kind of food]?",
            "We [like|fancy] {cuisine}.",
            ("Thai", "Italian", "Lebanese"),
        ),
        general_slots=("date", "time", "people", "name", "phone"),
        book_table=_intent(
            "[Can I|I would like to] book [a table|a window seat] at {place} on {date}[, please|].",
            "Do you know somewhere to [eat|have dinner] {cuisine} [food|dishes] near {place}?",
            "We are {people} and [hungry|want lunch]; is anything free at {time}?",
            offer="{place} [cooks|serves] {cuisine} and can [seat|take] {people} at {time}.",
            done=(_BOOKED, "The [table|reservation] is yours at {time}; [the kitchen|the chef] closes late."),
        ),
        order_meal=_intent(
            "I want [a delivery|an order] of {cuisine} food to {address}.",
            "My [order|dinner] came [cold|without the rice], [I want it replaced|who can help me]?",
            offer="The kitchen can [cook|send] it by {time}, {amount} with delivery.",
            done=(_BOOKED, "[The food|Your meal] is on its way and [should be|arrives] there at {time}."),
        ),
    ),
    "taxi": _domain(
        (
            "Is there [space|room] for [four bags|a wheelchair] in the car?",
            "[Yes|There is], the driver helps you [in|load].",
        ),
        ("Can I pay the driver by card?", "Yes, the fare is {amount} [by card|either way]."),
        slot=Slot(
            "car",
            "What [car|vehicle] [do you need|was it]?",
            "A {car}[, I think|].",
            ("grey van", "white estate", "blue saloon"),
        ),
        general_slots=("address", "time", "phone", "people", "name"),
        book_ride=_intent(
            "[I need|Please send] a [ride|car] from {address} to {place} at {time}.",
            "[Can someone|Could a driver] pick me up at {place} on {date}?",
            "How do I get to {place} by {time}? I am at {address}[ with bags|].",
            offer="A {car} can be [outside|with you] at {time}; the ride is about {amount}.",
            done=("[Done|All set]: the driver comes in a {car} at {time}.", _BOOKED),
        ),
        trace_ride=_intent(
            "My driver has not [come|shown up], I am [waiting|standing] at {address}.",
            "I left my [phone|book|bag] in the [car|back seat] on the way to {place}.",
            offer="The driver of the {car} is [at the corner|two streets away], I can [call|send] him at {time}.",
            done=("The driver [knows|has been told] and meets you at {address}.", _CHANGED),
        ),
    ),
    "flight": _domain(
        ("How [much luggage|many bags] can I take?", "One in the cabin, [the hold is|another one costs] {amount}."),
        ("Is there a meal [on board|in the air]?", "A [drink|sandwich] is, [dinner|a full meal] is {amount}."),
        slot=Slot(
            "city",
            "Which [city|airport] [is that|do you mean]?",
            "[It is|That is] {city}.",
            ("Oslo", "Lisbon", "Athens", "Riga"),
        ),
        general_slots=("date", "name", "time", "code"),
        book_flight=_intent(
            "[I have to|I want to] be in {city} on {date}, what leaves [before|around] {time}?",
            "[Please book|Find me] a [window|aisle] seat to {city} for {date}.",
            "What is the cheapest ticket to {city} for {people}?",
            offer="There is one [to|for] {city} at {time}, {amount} [with|without] a bag, [one stop|direct].",
            done=(_BOOKED, "Your boarding pass to {city} [is in your mail|is ready]; the gate closes at {time}."),
        ),
        change_flight=_intent(
            "I cannot [check in|find my seat] for {city}, it says {code} is [wrong|unknown].",
            "My bag did not [arrive|come] with me from {city}, where is it now?",
            offer="The [airline|crew desk] can [rebook you|bring it] to {city} on {date}[ for {amount}|].",
            done=(_CHANGED, "The [airline|gate] has it; bring your passport to the desk at {time}."),
        ),
    ),
    "banking": _domain(
        ("Do I pay interest [on that|meanwhile]?", "No, the balance [stays|is kept] as it was until {date}."),
        ("Can I still [transfer|withdraw] money?", "Up to {amount}, at any [branch|cash machine]."),
        slot=Slot(
            "account",
            "Which account [is it|was it]?",
            "[It is|From] my {account}.",
            ("savings account", "joint account"),
        ),
        general_slots=("code", "name", "amount", "date", "address"),
        dispute_charge=_intent(
            "There is a charge of {amount} from {place} [that I did not make|I do not know].",
            "Why was {amount} taken [twice|on {date}]? I only booked once.",
            "{place} says it refunded {amount}, [I do not see it|my balance is the same].",
            offer="I can [dispute|hold] the payment of {amount} and [credit|send] it back to your {account}.",
            done=("The [dispute|claim] is open as {code}; the {account} is credited on {date}.", _CHANGED),
        ),
        block_card=_intent(
            "I [lost|left] my card [in a taxi|at {place}], please [stop|block] it.",
            "The machine at {place} kept my card and I need [cash|money] by {date}.",
            offer="I can [block|freeze] it now and [post|send] a new one to {address} for {amount}.",
            done=("It is [blocked|frozen]; the new card and PIN come [on|by] {date}.", _BOOKED),
        ),
    ),
    "doctor": _domain(
        (
            "Should I [take anything|stay in bed] until then?",
            "Rest and drink a lot, [call us|come in] if it hurts more.",
        ),
        ("Do I have to pay for [the visit|that]?", "Your insurance [covers it|pays], the form is {amount}."),
        slot=Slot(
            "symptom",
            "What [is wrong|seems to be the trouble]?",
            "It is {symptom}.",
            ("a sore throat", "a rash", "back pain"),
        ),
        general_slots=("date", "name", "time", "phone"),
        book_visit=_intent(
            "I have had {symptom} since {date}, [could someone look at it|can I come in]?",
            "[I need|Can I have] an appointment at {place} for my [son|mother], it is {symptom}.",
            "Is there [anything|a slot] free on {date}? I do not feel well.",
            offer="The [nurse|doctor] at {place} can see you at {time} about [the|that] {symptom}.",
            done=(_BOOKED, "[You are|That is] in the diary for {time}; the [waiting room|desk] is on the left."),
        ),
        renew_prescription=_intent(
            "My [tablets|pills] run out on {date}, can I [pick up|order] more?",
            "I was told to call about my [results|blood test] from {date}.",
            offer="The doctor can [sign|check] it at {time}, the pharmacy at {place} [has it|calls you] then.",
            done=("The [prescription|form] waits [for you|at the desk] from {time}.", _CHANGED),
        ),
    ),
    "internet_support": _domain(
        ("Do I have to be [in|there] for the engineer?", "Yes, the [cable|socket] is inside; it takes {minutes}."),
        ("Will my [number|password] [change|stay the same]?", "It stays, only the [router|cable] is new."),
        slot=Slot(
            "light",
            "What does the box [show|do]?",
            "There is a {light}.",
            ("red light", "green light", "flashing lamp"),
        ),
        general_slots=("address", "phone", "name", "date", "time"),
        fix_connection=_intent(
            "[Nothing loads|It is very slow] here since {date}, the {light} [is on|blinks].",
            "My [line|connection] drops every evening [at|around] {time}[, I work from home|].",
            "I cannot [watch films|book anything] at {address}, the box shows a {light}.",
            offer="I can [reset|test] the line now, or [send|book] an engineer at {time} for that {light}.",
            done=("The line [is back|tests fine now]; [restart|unplug] the box at {time}.", _BOOKED),
        ),
        order_line=_intent(
            "We move to {address} on {date} and [want|need] a [faster|second] line.",
            "The [bill|charge] of {amount} is for a speed that I [never|do not] get.",
            offer="The [fast|large] plan is {amount} [a month|with the box], the delivery of the box is free.",
            done=("The [plan|speed] starts on {date}; the new password is {code}.", _CHANGED),
        ),
    ),
    "cinema": _domain(
        ("Is it [in French|with subtitles]?", "[Yes|It is], and it lasts {minutes} with the trailers."),
        ("Can we eat [there|inside]?", "The bar [sells popcorn|has snacks], a drink is {amount}."),
        slot=Slot(
            "film",
            "Which [film|one] [is it|would you like]?",
            "{film}.",
            ("The Long Flight", "A Room by the Sea", "Bank Holiday"),
        ),
        general_slots=("date", "time", "people", "name", "code"),
        book_seats=_intent(
            "What is on at {place} on {date}? We are {people}.",
            "[Two|Four] [seats|tickets] for {film} at {time}[, please|], [in the back|on the aisle].",
            "Can I [still see|book] {film} on {date}?",
            offer="{film} [runs|plays] at {time} at {place}, [row F is free|there are seats at the back], {amount}.",
            done=(_BOOKED, "Your [tickets|seats] for {film} wait at the desk until {time}."),
        ),
        refund_seats=_intent(
            "We [missed|could not come to] {film} on {date}, [can we get our money back|what now]?",
            "I was charged {amount} twice for {film}.",
            offer="I can [refund|credit] {amount} or [move you to|give you seats for] the late show at {time}.",
            done=(_CHANGED, "You get {amount} back; enjoy {film} [another day|on a big screen]."),
        ),
    ),
    "parcel": _domain(
        ("Can the neighbours [take|sign for] it?", "[Yes|They can], with a note [on the door|for the van]."),
        ("What if it [breaks|is damaged]?", "It is insured up to {amount}, keep the [wrapping|box]."),
        slot=Slot("item", "What is [inside|in it]?", "A {item}.", ("box of books", "router", "coat", "film poster")),
        general_slots=("address", "code", "phone", "date", "name"),
        track_delivery=_intent(
            "It should have [come|been here] on {date} and nothing is [here|in the box]; the code is {code}.",
            "The driver says he [left it|was] at {address}, [but I was in|that is not my door].",
            "Where is my {item}? I have waited since {date}.",
            offer="Your {item} is [in our depot|on the van]; we can [try|bring it] again at {time}.",
            done=("It [comes|goes out] again on {date}; [sign for it|someone must be in] at {time}.", _CHANGED),
        ),
        send_item=_intent(
            "I want to send a {item} to {address}, what does it [cost|weigh at most]?",
            "Can someone pick up a {item} [here|at {place}] on {date}?",
            offer="We [collect|pick up] the {item} at {time}; the label is {amount} [insured|with a signature].",
            done=(_BOOKED, "[Print|Put on] the label {code}; the van is there at {time}."),
        ),
    ),
    "library": _domain(
        ("How many can I [borrow|take] at once?", "[Ten|Six] on one card, each for {weeks}."),
        ("Is there [a desk|a quiet room] to [work|read]?", "Upstairs, by the [shelves|windows], until {time}."),
        slot=Slot(
            "title",
            "Which [title|one] is it?",
            "It is {title}.",
            ("The Taxi Driver's Wife", "Cooking in Rome", "Hotel Life"),
        ),
        general_slots=("date", "name", "code", "phone"),
        reserve_title=_intent(
            "Do you have {title}[ here| at {place}]? I need it by {date}.",
            "[Can you|Please] keep {title} for me, I [come by|pick it up] on {date}.",
            "All copies of {title} are out, can I [make a reservation|be next in line]?",
            offer="A copy of {title} is on the shelf at {place}, I can [keep|hold] it until {date}.",
            done=(_BOOKED, "{title} waits at the desk[, bring your card|]; it is yours for {weeks}."),
        ),
        renew_loan=_intent(
            "I cannot [bring back|return] {title} on {date}, may I [keep|have] it longer?",
            "There is a charge of {amount} on my card, but I returned {title}.",
            offer="I can [renew|extend] {title} by {weeks} and [take off|drop] the fine of {amount}.",
            done=(_CHANGED, "It is due on {date} now; [the fine is gone|no more reminders]."),
        ),
    ),
}
