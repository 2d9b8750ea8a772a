"""Lists of English words that the rules of this room need."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


IRREGULAR_NOUNS = _pairs("""
    men:man women:woman children:child feet:foot teeth:tooth geese:goose mice:mouse oxen:ox lice:louse dice:die
    calves:calf halves:half knives:knife wives:wife lives:life leaves:leaf loaves:loaf shelves:shelf wolves:wolf
    scarves:scarf hooves:hoof thieves:thief elves:elf selves:self cacti:cactus buses:bus gases:gas lenses:lens
    irises:iris viruses:virus octopuses:octopus walruses:walrus chorus:chorus axes:axe shoes:shoe canoes:canoe
    toes:toe hoes:hoe oboes:oboe movies:movie cookies:cookie zombies:zombie hoodies:hoodie smoothies:smoothie
    brownies:brownie selfies:selfie rookies:rookie ties:tie pies:pie caches:cache aches:ache mustaches:mustache
    moustaches:moustache headaches:headache quizzes:quiz crises:crisis bases:base horses:horse houses:house
    vases:vase nurses:nurse purses:purse blouses:blouse cases:case roses:rose noses:nose hoses:hose fuses:fuse
    courses:course nooses:noose causes:cause mazes:maze skies:sky genies:genie birdies:birdie doggies:doggie
    veggies:veggie calories:calorie menus:menu bookshelves:bookshelf walkie-talkies:walkie-talkie
    lies:lie foxes:fox specimen:specimen
""")  # fmt: skip

# Words that end in s and stay: singulars, and things that only come in pairs or masses.
UNCHANGED_NOUNS = _words("""
    bus gas lens iris virus octopus walrus cactus campus circus chorus canvas atlas christmas tennis news series
    species clothes scissors pants jeans shorts goggles pajamas pyjamas overalls trousers tights leggings
    binoculars goods sunglasses eyeglasses barracks headquarters pliers tongs tweezers gymnastics athletics
    swiss chess asparagus hummus mess class glass grass dress boss cross press harness wilderness business
    mattress waitress actress fortress compass bass brass moss kiss toss loss hibiscus this his its is was has
    does yes us thus plus perhaps always across towards less unless as outdoors indoors upstairs downstairs
    sometimes besides whereas
""")  # fmt: skip

IRREGULAR_VERBS = _pairs("""
    is:be are:be was:be were:be been:be being:be am:be 's:be 're:be 'm:be has:have had:have having:have 've:have
    does:do did:do done:do doing:do goes:go went:go gone:go sat:sit stood:stand held:hold wore:wear worn:wear
    ran:run rode:ride ridden:ride ate:eat eaten:eat made:make took:take taken:take taking:take gave:give
    given:give got:get gotten:get saw:see seen:see led:lead lay:lie lying:lie laid:lay lain:lie hung:hang
    threw:throw thrown:throw caught:catch swung:swing hit:hit cut:cut put:put set:set built:build shown:show
    grown:grow flew:fly flown:fly drove:drive driven:drive drank:drink drunk:drink sang:sing sung:sing swam:swim
    fell:fall fallen:fall left:leave bent:bend fed:feed kept:keep slept:sleep met:meet dug:dig shot:shoot
    won:win lit:light broke:break broken:break drew:draw drawn:draw wrote:write written:write spoke:speak
    rose:rise blew:blow blown:blow bought:buy brought:bring thought:think taught:teach told:tell said:say
    lost:lose dying:die tying:tie tied:tie using:use used:use riding:ride came:come coming:come became:become
    knelt:kneel leapt:leap leant:lean crept:creep swept:sweep split:split spread:spread shut:shut read:read
    beat:beat beaten:beat bit:bite bitten:bite hid:hide hidden:hide found:find stuck:stick strung:string
    risen:rise rides:ride wading:wade wades:wade staring:stare stares:stare torn:tear woven:weave frozen:freeze
""")  # fmt: skip

# Nouns that place or count things, or name a time or a manner, rather than a thing one could draw a box around.
NOT_GROUNDABLE = _words("""
    place time thing one front back side top bottom middle center centre end edge rear left right distance
    direction way lot kind sort type variety number amount day night evening morning afternoon noon
    moment while season summer winter spring fall year hour minute second weekend today conversation use order
    part view fun turn act action motion process look break rest
""")  # fmt: skip

# Pronouns with the form that lists of object classes hold.
PRONOUNS = _pairs("""
    him:he his:he her:she hers:she them:they their:they theirs:they its:it me:i my:i mine:i us:we our:we ours:we
    your:you yours:you
""")  # fmt: skip
