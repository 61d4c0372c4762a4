"""The word banks of the embedded news corpus: sections, families, topics, and what their sentences are made of.

A sentence is an actor, an action and sometimes a detail. ``{place}``, ``{n}`` and ``{pct}`` are filled in when the
sentence is made. Fragments of one bank are separated by bars. Topics belong to a family and share its bank with their
siblings; families belong to a section, whose name is a broad tag. Topics with parents are mixtures: they have no family
and few fragments of their own, since most of their words are their parents'.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bank:
    """Fragments: who, did what, and under which circumstances."""

    actors: tuple[str, ...]
    actions: tuple[str, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Topics that share vocabulary. Its section names a broad tag; None: no section covers it."""

    section: str | None
    bank: Bank


@dataclass(frozen=True)
class Topic:
    """A topic: the day it first appears, how often it is written about, its fragments, and its family or parents."""

    name: str
    first_day: str
    weight: float
    bank: Bank
    family: str | None = None
    parents: tuple[str, ...] = ()


def _fragments(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _bank(actors: str, actions: str, details: str) -> Bank:
    return Bank(_fragments(actors), _fragments(actions), _fragments(details))


def _family(section: str | None, *banks: str) -> Family:
    return Family(section, _bank(*banks))


def _topic(name: str, family: str, first_day: str, weight: float, *banks: str) -> Topic:
    return Topic(name, first_day, weight, _bank(*banks), family=family)


def _mixture(name: str, parents: str, first_day: str, weight: float, *banks: str) -> Topic:
    return Topic(name, first_day, weight, _bank(*banks), parents=_fragments(parents))


PLACES = _fragments(
    "the capital|the northern provinces|the coastal region|Lisbon|Rotterdam|Hanoi|Nairobi|Tallinn|Quito|Osaka|Lyon|"
    "Gdansk|Accra|the river delta|the border area|Valencia|Dublin|Montreal|Izmir|Bergen|the southern islands|Graz|"
    "Adelaide|Kraków|the lake district|Porto|Cebu|Leipzig|Tampere|Rosario"
)

OPENINGS = _fragments(
    "On Monday,|On Tuesday,|On Thursday,|Late on Friday,|Over the weekend,|This week,|After months of talks,|"
    "In an unexpected step,|According to a report,|For the second year in a row,|Despite protests,|"
    "In a statement,|Earlier this month,|As expected,|Behind closed doors,"
)

CLOSINGS = _fragments(
    "A decision is expected before the end of the month.|Critics called the step too little and too late.|"
    "Further details were not given.|The figures will be revised in the autumn.|Residents were asked to stay calm.|"
    "A spokesperson declined to comment.|Similar reports came from {place}.|Authorities in {place} welcomed the news.|"
    "Costs are put at {n} million.|It is the third such case this year.|An inquiry has been opened.|"
    "Observers had expected a different outcome.|Support among the public stands at {pct} per cent.|"
    "The matter now goes to the ministry.|Work is to begin in spring.|Nobody was hurt.|"
    "The announcement came as a surprise to many in {place}.|Experts advise against drawing early conclusions.|"
    "A second meeting has been set for next week.|Local media had reported the plans first.|"
    "Some {n} people followed the event online.|The numbers are {pct} per cent above those of last year."
)

SECTIONS: dict[str, Bank] = {
    "health": _bank(
        "doctors|health officials|the health ministry|patients' groups|researchers at the university clinic|nurses",
        "warned that cases could rise by {pct} per cent|called for better care|published new guidelines|"
        "treated {n} patients|asked people at risk to see a doctor|reported fewer deaths than last year|"
        "started a trial with {n} volunteers|pointed to a lack of staff",
        "during the winter season|among older people|as symptoms spread|at clinics in {place}",
    ),
    "farming": _bank(
        "farmers|the farmers' union|the agriculture ministry|growers in {place}|inspectors|food producers",
        "asked for emergency support|reported losses of {n} million|sold {pct} per cent less than a year ago|"
        "blamed the weather|feared for the season|complained about low prices|inspected {n} farms|"
        "agreed on new rules for exports",
        "after a difficult year|at markets in {place}|as feed became dearer|despite good prices",
    ),
    "environment": _bank(
        "environmental groups|scientists|the environment agency|volunteers|local authorities|campaigners",
        "warned of lasting damage|measured the highest level in {n} years|asked for stricter limits|"
        "mapped the affected area|blamed a warmer climate|took samples near {place}|cleared {n} hectares|"
        "presented a protection plan",
        "after a dry summer|along the coast|as temperatures rise|in a protected area",
    ),
    "energy": _bank(
        "the energy ministry|utilities|the network regulator|the operator of the plant|energy companies|engineers",
        "approved a plant of {n} megawatts|raised output by {pct} per cent|postponed the investment|"
        "connected {n} households|signed a supply contract|warned of shortages in winter|cut tariffs|"
        "tested a new installation near {place}",
        "as demand for power grew|to reduce imports|under a long-term contract|before the heating season",
    ),
    "economy": _bank(
        "economists|the finance ministry|analysts|companies|the statistics office|business leaders",
        "expected growth of {pct} per cent|lowered their forecast|reported rising costs|announced {n} job cuts|"
        "pointed to weak demand|welcomed the figures|revised the data for the last quarter|feared a recession",
        "in the third quarter|as inflation stayed high|for the first time since the crisis|in the year to June",
    ),
    "politics": _bank(
        "the government|the opposition|members of parliament|the prime minister|ministers|the president",
        "rejected the proposal|promised a reform|voted for the bill by a narrow majority|called for talks|"
        "defended the decision|demanded an investigation|met in {place}|accused rivals of delay",
        "after a heated debate|ahead of the summit|under pressure from the public|before the summer recess",
    ),
    "justice": _bank(
        "the justice ministry|lawyers|victims' families|the bar association|legal scholars|the ombudsman",
        "welcomed the ruling|asked for tougher penalties|filed a complaint|named {n} cases|waited for a hearing|"
        "spoke of a failure of the authorities|demanded compensation|cited the law",
        "under the penal code|in a case that began in {place}|after {n} months of delay|in the name of the victims",
    ),
    "technology": _bank(
        "developers|the company|engineers|users|the start-up|data protection officers",
        "presented a new version|reported a fault that affected {n} users|raised {n} million from investors|"
        "promised better protection of data|opened an office in {place}|tested the system for a year|"
        "delayed the launch|asked regulators for clear rules",
        "after a technical failure|on millions of devices|at a trade fair in {place}|under new rules",
    ),
    "transport": _bank(
        "commuters|the transport ministry|operators|passengers|the transport union|city planners",
        "faced delays of several hours|announced a new timetable|carried {pct} per cent more passengers|"
        "closed the route for repairs|asked for more investment|ordered {n} new vehicles|opened a link to {place}|"
        "raised fares",
        "during the holiday rush|because of a strike|on the line to {place}|after a safety check",
    ),
    "science": _bank(
        "an international team|scientists|researchers from {place}|the research council|a doctoral student",
        "published the results in a journal|analysed {n} samples|repeated the experiment|"
        "found traces that are older than thought|announced a discovery|received a grant of {n} million|"
        "questioned an earlier finding",
        "after years of work|with a new instrument|in the laboratory|at a conference in {place}",
    ),
    "culture": _bank(
        "visitors|the jury|the organisers|artists|critics|the culture ministry",
        "praised the programme|awarded the main prize|sold {n} tickets|opened the season in {place}|"
        "postponed the opening|celebrated an anniversary|asked for more funding|honoured a life's work",
        "before a full house|after a long renovation|to great applause|with guests from {place}",
    ),
    "sport": _bank(
        "the coach|fans|the club|the favourite|the national team|the federation",
        "celebrated a narrow victory|lost in the final minutes|announced the squad|missed the start of the season|"
        "set a record that had stood for {n} years|hoped for a place in the final|recovered from an injury|"
        "signed a contract for two years",
        "in front of {n} spectators|after extra time|at the championship in {place}|on home ground",
    ),
}

FAMILIES: dict[str, Family] = {
    "epidemics": _family(
        "health",
        "public health institutes|family doctors|the virus research group|travel clinics|a panel of medical advisers|"
        "parents of small children",
        "warned of a wave of measles|counted {n} cases of influenza|followed the spread of the virus|"
        "asked people to wash their hands and wear masks|set up a testing station|compared infection rates by age|"
        "advised travellers to get protected|saw the number of carriers fall",
        "before the flu season|as immunity declined|among children under five|in crowded districts|"
        "after a wave of infections|since the last pandemic",
    ),
    "care": _family(
        "health",
        "carers|social workers|relatives of patients|health insurers|the nursing college|ambulance crews",
        "waited weeks for an appointment|worked double shifts|hired {n} nurses from abroad|"
        "looked after patients at home|complained of exhaustion|opened a day clinic|paid for longer stays|"
        "reported {n} unfilled posts in nursing",
        "on the night shift|because beds were missing|as waiting lists grew|after discharge from the ward|"
        "with too few carers|for patients who live alone",
    ),
    "pharmacy": _family(
        "health",
        "clinical researchers|chemists|makers of supplements|the licensing authority|cardiologists|consumer doctors",
        "lowered blood pressure in {n} test persons|examined the ingredients|warned of an overdose|"
        "compared the pill with a placebo|changed the label on the package|halved the daily dose|"
        "found no benefit for the heart|registered a new substance",
        "against diabetes|without a prescription|in tablets and drops|for people with high cholesterol|"
        "according to the package leaflet|in a study with {n} participants",
    ),
    "animals": _family(
        "farming",
        "owners of large barns|the breeders' association|abattoirs|feed suppliers|animal welfare groups|"
        "drivers of animal transports",
        "vaccinated their animals|lost part of the flock|checked stables and pens|sent fewer animals to slaughter|"
        "reported sick piglets and calves|disinfected the barn|kept hens and cows apart|paid more for feed",
        "on farms with more than {n} animals|in the stable|under new rules for keeping animals|"
        "because of disease in the herd|at the cattle and poultry market|during transport to the abattoir",
    ),
    "food": _family(
        "farming",
        "food processors|wholesalers|mills and canneries|market traders|cooperatives|the food industry association",
        "bought less of the fresh produce|cooled the goods for too long|froze part of the catch and the crop|"
        "labelled the origin of the product|sorted out spoiled goods|raised the price per kilo|"
        "delivered {n} tonnes to the canneries|tested the quality on arrival",
        "in cold stores|on the way to the supermarket|at the wholesale market|before processing|"
        "as the best-before date passed|with a certificate of origin",
    ),
    "nature": _family(
        "environment",
        "conservationists|green activists|the federal environment office|climate scientists|sustainability advisers|"
        "pupils on a school strike",
        "asked for less waste and more nature|counted the cost of pollution|planted {n} trees|"
        "accused industry of greenwashing|measured carbon in the soil|signed a pact for the planet|"
        "banned single-use products|rated the ecological footprint",
        "for future generations|because ecosystems are under stress|with a new environmental label|"
        "in the sustainability report|in woods and wetlands|against the throwaway society",
    ),
    "water and fire": _family(
        "environment",
        "civil protection|meteorologists|the fire brigade|mayors along the river|weather services|dam operators",
        "declared a state of emergency|issued a severe weather warning|flew over the area by helicopter|"
        "brought people to safety|measured rainfall far below the average|closed roads and bridges|"
        "asked households to save water|laid hoses and set up pumps",
        "during the heatwave|after the storm|in the valley of the river|when the rain failed|"
        "in the district around {place}|at the highest alert level",
    ),
    "renewables": _family(
        "energy",
        "operators of wind and solar parks|municipal utilities|electricity traders|energy cooperatives|"
        "planners of power lines|makers of transformers",
        "fed green power into the grid|sold electricity at negative prices|stored surplus electricity|"
        "won {n} megawatts at auction|covered half of demand with renewables|waited for a grid connection|"
        "switched off installations at noon|applied for a permit",
        "on windy and sunny days|with cheap electricity|as renewables expanded|at the electricity exchange|"
        "because power lines are missing|for every kilowatt hour",
    ),
    "fuels": _family(
        "energy",
        "power station owners|fuel traders|the mining company|geologists|the energy safety inspectorate|"
        "workers at the refinery",
        "extended the operating licence|shut down the site for maintenance|stored fuel for the winter|"
        "stopped imports of fuel|searched for new deposits|repaired a leaking valve|dismantled an old plant|"
        "shipped fuel to {place}",
        "as fuel became scarce|after a safety alarm|at the end of its life|for {n} more years of operation|"
        "despite the exit from fossil energy|with state guarantees",
    ),
    "finance": _family(
        "economy",
        "bankers|rating agencies|insurers|pension funds|the financial regulator|private savers",
        "moved money into bonds|warned of bad loans|issued debt worth {n} million|paid higher interest on deposits|"
        "lowered the rating|expected tighter credit|cut the return on savings|kept more cash in reserve",
        "as money became dearer|on financial markets|before the central bank met|with rising yields|"
        "after losses on loans|in the balance sheet",
    ),
    "trade": _family(
        "economy",
        "manufacturers|retailers|purchasing managers|chambers of commerce|suppliers|importers",
        "passed on higher costs to customers|filled their order books|paid more for raw materials|"
        "looked for new markets abroad|ran short of parts|complained of unfair competition|"
        "cut prices by {pct} per cent|delivered late",
        "because of expensive imports|in the export business|as orders from abroad fell|in factories and shops|"
        "with prices of raw materials|along the supply chain",
    ),
    "work and home": _family(
        "economy",
        "young families|low earners|craft businesses|the social partners|city councils|single parents",
        "could not afford to live in {place}|spent {pct} per cent of their income on rent|moved closer to work|"
        "earned less than the average|asked for a living wage|worked from home|applied for benefits|"
        "demonstrated for affordable living",
        "as wages lag behind rents|with two jobs|in growing cities|for people on low incomes|"
        "as the building trade lacks workers|after a move to the city",
    ),
    "home affairs": _family(
        "politics",
        "party leaders|coalition partners|the interior committee|local politicians|civil society groups|"
        "first-time voters",
        "argued about asylum law|lost the majority in parliament|presented a party programme|"
        "agreed on a coalition|proposed a referendum|collected {n} signatures|distanced themselves from populists|"
        "changed the law on citizenship",
        "in the election campaign|at the party conference|in the debate on immigration|in coalition talks|"
        "according to the latest poll|for people without a passport",
    ),
    "foreign affairs": _family(
        "politics",
        "heads of state|the security council|special envoys|allies|peace researchers|the foreign policy committee",
        "discussed a ceasefire|sent a delegation to {place}|condemned the attack|offered security guarantees|"
        "cancelled a state visit|signed a treaty|warned of an escalation|exchanged {n} prisoners",
        "as fighting continued|at the peace talks|on the margins of the summit|between the two neighbours|"
        "along the front line|in the conflict over the border region",
    ),
    "law": _family(
        "justice",
        "investigators|defence lawyers|the public prosecutor|witnesses|forensic experts|the defendants",
        "gathered evidence|raided {n} offices|denied the charges|confessed to the crime|"
        "faced up to {n} months in prison|closed the case|questioned witnesses|followed the trail of the money",
        "on suspicion of fraud|after an anonymous tip|in custody|during the investigation|for organised crime|"
        "despite an alibi",
    ),
    "computing": _family(
        "technology",
        "internet companies|digital experts|platform operators|computer scientists|the data protection authority|"
        "network engineers",
        "collected personal data of {n} users|blocked suspicious accounts|changed the algorithm|"
        "switched off the service for hours|asked users to change their passwords|moved data to servers in {place}|"
        "checked the app for weak spots|fined the platform",
        "on the internet|with artificial intelligence|in the terms of use|on phones and laptops|"
        "because of a programming error|through a back door",
    ),
    "hardware": _family(
        "technology",
        "electronics makers|factory planners|materials scientists|suppliers of components|mechanical engineers|"
        "the industrial group",
        "automated a production line|built prototypes|ordered machines worth {n} million|"
        "put sensors in every component|opened a clean room|doubled the output of the factory|"
        "lacked electronic parts|patented a new design",
        "on the assembly line|with sensors and motors|in series production|at the factory in {place}|"
        "for industrial customers|in the next generation of machines",
    ),
    "journeys": _family(
        "transport",
        "travellers|freight forwarders|the crew|travel agencies|ground staff|the accident investigation board",
        "arrived {n} minutes late|missed their connection|raised the price of tickets and freight|"
        "checked cargo and luggage|walked out over pay|sold a stake in the company|waited in long queues|"
        "added services to {place}",
        "at the terminal|on board|because staff were missing|with {n} passengers on board|"
        "at stations, ports and airports|after a technical fault on the way",
    ),
    "roads": _family(
        "transport",
        "drivers|the automobile club|car rental firms|city dwellers|town councils|garages",
        "looked for a parking space|drove {n} kilometres a day|left the car at home|paid a toll|"
        "kept cars out of the centre|filled the roads to {place}|shared rides|drove slowly through the village",
        "on the way to the coast|in the city centre|behind the wheel|at motorway services|"
        "on long weekends|with the engine running",
    ),
    "research": _family(
        "science",
        "project leaders|physicists and chemists|the academy of sciences|young scientists|reviewers|the institute",
        "evaluated the data of {n} measurements|confirmed a theory|built a more sensitive detector|"
        "published an open data set|asked for computing time|presented pictures of unmatched sharpness|"
        "worked with partners on four continents|won a research prize",
        "under the microscope and in the model|in basic research|in a long series of measurements|"
        "with computer simulations|for the first time ever|in the journal's latest issue",
    ),
    "arts": _family(
        "culture",
        "the cultural foundation|patrons|the artistic director|reviewers of the arts pages|ticket agencies|"
        "young talents",
        "opened the festival|drew a record audience|showed works of women artists|read from unpublished letters|"
        "quarrelled over the director's contract|donated {n} thousand|rehearsed for weeks|moved the audience to tears",
        "in the old theatre|at the gala|on the programme of the festival|in an evening of art and music|"
        "for the anniversary|with standing ovations",
    ),
    "contests": _family(
        "sport",
        "the champion|the title holder|the captain|trainers|the outsider|sports doctors",
        "won the title|trained in {place}|withdrew with a knee injury|qualified for the final|"
        "beat the favourite|dropped to second place|scored points in the last round|announced the end of a career",
        "in the semi-final|in the heat of the afternoon|with a sore shoulder|in the last round|"
        "on the way to the title|before the decisive match or race",
    ),
    "miscellany": _family(
        None,
        "members of the association|beginners and experts|enthusiasts from {place}|a retired teacher|onlookers|"
        "two sisters from {place}",
        "met for the annual gathering|founded a new circle|shared their experience|counted {n} participants|"
        "won a local prize|opened their doors to the public|taught a course|told stories of former days",
        "on a sunny weekend|in a village hall|for the tenth time|with friends from {place}|to everyone's delight|"
        "after a long winter",
    ),
}

# fmt: off
TOPICS: tuple[Topic, ...] = (
    # The past: topics that are there from the first weeks on.
    _topic("infectious disease", "epidemics", "2018-01-02", 1.8,
        "epidemiologists|the disease control centre|virologists|an isolation ward|contact tracers",
        "traced the outbreak to a market|confirmed {n} infections with the virus|found a new strain of the virus|"
        "put contacts of the infected in quarantine|lifted the quarantine|identified a carrier of the pathogen",
        "as the epidemic spread|after laboratory tests were positive|while the incubation period lasts|"
        "in isolation|as fever and cough returned"),
    _topic("vaccination", "epidemics", "2018-01-03", 1.2,
        "immunologists|vaccination centres|the vaccine maker|mobile vaccination teams|sceptics of vaccines",
        "delivered {n} doses of the vaccine|recommended a booster shot|"
        "reported strong antibodies after the second dose|extended the immunisation campaign to schools|"
        "refused the jab|threw away expired doses",
        "to protect against the virus|before the vaccination season|as vaccine stocks ran low|"
        "with a needle-free jab|after the booster"),
    _topic("hospitals", "care", "2018-01-04", 1.6,
        "the hospital association|surgeons|emergency wards|anaesthetists|a hospital manager",
        "closed beds in intensive care|postponed operations|moved patients to another ward|opened a surgical unit|"
        "bought a scanner|delivered {n} babies",
        "as emergency rooms filled up|because nursing shifts could not be staffed|after the merger of two hospitals|"
        "in the operating theatre|on the children's ward"),
    _topic("mental health", "care", "2018-01-05", 1.0,
        "psychologists|therapists|counsellors at schools|psychiatrists|volunteers on a helpline",
        "reported long waiting lists for therapy|offered counselling to teenagers|linked depression to loneliness|"
        "trained teachers to recognise anxiety|treated panic attacks|asked men to talk about grief",
        "after a rise in burnout|for people with depression|through a crisis line|in group sessions|"
        "as exam stress mounts"),
    _topic("elderly care", "care", "2018-03-16", 0.9,
        "nursing homes|pensioners|geriatric nurses|residents of a care home|dementia specialists",
        "raised the fee for a place in the home|shared a flat with five other pensioners|"
        "cared for {n} people with dementia|closed a floor of the home|brought meals to the elderly|"
        "installed emergency buttons",
        "in old age|for people over eighty|with a walking frame|in a shared flat for the old|"
        "as families live far away"),
    _topic("nutrition", "pharmacy", "2018-01-08", 0.8,
        "dieticians|school canteens|nutrition researchers|cooks|vegetarians",
        "advised less sugar and salt|linked the diet to heart disease|served more vegetables|measured vitamin levels|"
        "praised beans and nuts|taxed lemonade",
        "in a study of eating habits|to reduce obesity|as part of a balanced diet|at breakfast|with fewer calories"),
    _topic("medicines", "pharmacy", "2018-01-09", 1.2,
        "the medicines agency|the drug maker|pharmacists|pharmacologists|makers of generics",
        "approved a new drug|withdrew the tablets from sale|reported side effects in {n} patients|"
        "reported a shortage of antibiotics|lost a patent|imported painkillers",
        "after a clinical trial|at pharmacies in {place}|until the licence is renewed|on prescription|"
        "as syrup for children"),
    _topic("animal health", "animals", "2018-01-10", 1.1,
        "veterinarians|the animal health service|a district vet|animal disease experts|a veterinary laboratory",
        "culled {n} infected animals|sealed off the farm|tested the herd for the disease|"
        "ordered cattle to be kept inside|took blood from the cows|found swine fever in a wild boar",
        "inside a surveillance zone|after sick animals were found|until the herd is free of disease|"
        "with foot-and-mouth disease|behind a fence against wild boar"),
    _topic("poultry trade", "animals", "2018-01-11", 0.9,
        "poultry farmers|egg producers|chicken exporters|hatcheries|fast food chains",
        "shipped fewer chickens abroad|raised the price of eggs|lost buyers for turkeys and ducks|"
        "rebuilt laying flocks|hatched {n} chicks a day|gave up cages for hens",
        "as egg prices reached a record|after buyers banned poultry imports|before the export season for chicken meat|"
        "with free-range eggs|ahead of the goose season"),
    _topic("livestock", "animals", "2018-01-15", 1.0,
        "cattle breeders|pig farmers|dairy farms|shepherds|cattle dealers",
        "reduced their herds|protested against low milk prices|moved cattle to higher pastures|"
        "built larger barns for pigs|auctioned {n} bulls|sheared the sheep",
        "as slaughter prices fell|under rules on animal welfare|in the dairy sector|on alpine meadows|"
        "with robots for milking"),
    _topic("veterinary medicines", "animals", "2018-03-19", 0.8,
        "makers of animal drugs|vets with their own pharmacy|the veterinary medicines committee|dog owners|"
        "feed additive suppliers",
        "gave antibiotics to whole flocks|licensed a vaccine for pigs|prescribed worm tablets|"
        "recorded every dose given to a calf|sold fewer growth promoters|banned a hormone for cattle",
        "before the waiting period ends|by injection|mixed into the drinking water of the barn|against ticks|"
        "in residues of meat and milk"),
    _topic("grain harvest", "food", "2018-01-12", 1.1,
        "grain traders|wheat growers|combine drivers|seed companies|bakers' suppliers",
        "brought in the smallest wheat harvest for {n} years|stored maize in silos|sowed barley instead of wheat|"
        "cut the estimate for the crop by {pct} per cent|harvested rye before the hail|dried wet oats",
        "as yields fell|because fields were too dry|while wheat futures climbed|on sandy soil|with half-empty silos"),
    _topic("fisheries", "food", "2018-01-16", 0.9,
        "fishing crews|trawler owners|marine biologists|oyster farmers|anglers",
        "landed {pct} per cent less cod|argued over catch quotas|returned to port with empty nets|"
        "counted fewer herring in the spawning grounds|raised salmon in cages|threw small fish overboard",
        "under the new fishing quota|as fish stocks shrank|off the coast near {place}|at the fish auction|"
        "with finer nets"),
    _topic("food safety", "food", "2018-01-17", 0.9,
        "food inspectors|the food safety authority|a supermarket laboratory|allergy sufferers|hygiene controllers",
        "recalled cheese because of listeria|found salmonella in {n} samples|closed a kitchen for poor hygiene|"
        "traced the contaminated product to a factory|found glass in jam|detected traces of pesticides",
        "after customers fell ill|before it reached the shelves|with a public warning|in ready meals|"
        "despite clean papers"),
    _topic("climate policy", "nature", "2018-01-18", 1.6,
        "climate negotiators|the climate council|emission experts|island states|the climate minister",
        "agreed to halve greenhouse gas emissions|set a price on carbon|missed the climate target by {pct} per cent|"
        "presented a path to net zero|pledged {n} million for poorer countries|auctioned emission permits",
        "at the climate conference|under the Paris agreement|to cut carbon emissions|before the end of the decade|"
        "to limit warming"),
    _topic("biodiversity", "nature", "2018-01-24", 0.9,
        "ecologists|bird watchers|the nature conservation union|rangers|botanists",
        "counted fewer insects and wild birds|released lynx into the forest|restored {n} hectares of wetland|"
        "added the species to the red list|ringed young storks|sowed flower strips",
        "as habitats disappear|in the nature reserve|to protect endangered species|for bats and butterflies|"
        "in old hedges"),
    _topic("waste and recycling", "nature", "2018-01-25", 0.9,
        "recycling firms|waste collectors|sorting plants|scrap dealers|makers of packaging",
        "burned plastic that could be recycled|introduced a deposit on bottles|collected {n} tonnes of packaging|"
        "refused dirty household waste|exported scrap and rags|emptied the bins less often",
        "as landfills fill up|to reduce plastic packaging|under the recycling quota|in yellow sacks|from old phones"),
    _topic("water supply", "water and fire", "2018-01-19", 1.0,
        "water companies|hydrologists|the waterworks|well drillers|owners of swimming pools",
        "rationed drinking water|found reservoirs {pct} per cent full|drilled wells for groundwater|"
        "repaired leaking pipes|sent tankers of drinking water|built a desalination plant",
        "as the drought continued|to save water|because groundwater levels fell|at the reservoir|"
        "when taps ran dry"),
    _topic("floods", "water and fire", "2018-01-22", 1.0,
        "rescue teams|the flood warning centre|residents of flooded streets|dyke wardens|soldiers with shovels",
        "filled sandbags along the river|evacuated {n} homes after heavy rain|watched the dykes|"
        "pumped water out of cellars|ferried people by boat|cleared mud from shops",
        "as the river rose|after days of rain|when a dam threatened to break|up to the first floor|"
        "when the crest passed"),
    _topic("forest fires", "water and fire", "2018-01-23", 0.8,
        "firefighters|forest wardens|crews of water bombers|campers|owners of woodland",
        "fought flames on several fronts|brought a blaze near {place} under control|evacuated a campsite|"
        "cut firebreaks through the pines|lost {n} hectares of forest|banned barbecues",
        "as strong winds fanned the flames|after weeks of drought and heat|while smoke covered the valley|"
        "among dry pines|with embers still glowing"),
    _topic("solar power", "renewables", "2018-01-29", 1.0,
        "solar installers|makers of panels|owners of rooftops|roofers|tenants with a balcony",
        "mounted solar panels on {n} roofs|built a solar park near {place}|imported cheaper photovoltaic modules|"
        "waited months for an inverter|covered a car park with panels|grew berries under modules",
        "on sunny days|thanks to feed-in tariffs|as panels became cheaper|on south-facing roofs|on former fields"),
    _topic("wind power", "renewables", "2018-01-30", 1.0,
        "turbine makers|wind farm developers|opponents of turbines|rotor engineers|climbers who service masts",
        "erected {n} turbines offshore|won the tender for a wind farm|replaced old rotors|"
        "argued about the distance to homes|transported blades by night|anchored floating turbines",
        "in strong winds|in shallow waters off {place}|after the permit for the turbines was granted|on the ridge|"
        "with blades as long as a football pitch"),
    _topic("electricity grid", "renewables", "2018-01-31", 1.0,
        "grid operators|the transmission company|technicians at the substation|line workers|the control room",
        "built a high-voltage line to {place}|prevented a blackout|stabilised the grid with reserve plants|"
        "installed {n} smart meters|laid an underwater cable|balanced the frequency",
        "because of bottlenecks in the grid|after a power cut|when demand peaked in the evening|"
        "under high-voltage pylons|as the voltage dropped"),
    _topic("oil and gas", "fuels", "2018-01-26", 1.3,
        "oil producers|the pipeline operator|gas importers|drilling crews|tanker captains",
        "cut production by {n} barrels a day|filled gas storage to {pct} per cent|halted flows through the pipeline|"
        "began drilling in a new field|flared gas at the well|chartered a floating terminal",
        "as crude prices rose|after a leak in the pipeline|while tankers with liquefied gas queued|"
        "on an offshore platform|per barrel of crude"),
    _topic("nuclear power", "fuels", "2018-03-20", 0.9,
        "the reactor operator|nuclear physicists|opponents of nuclear power|inspectors of reactors|"
        "the nuclear waste commission",
        "took the reactor off the network|loaded {n} fuel rods|stored radioactive waste in a mine|"
        "found cracks in a cooling pipe|planned a small reactor near {place}|enriched uranium",
        "in the cooling tower|without a final repository|in the reactor core|under a dome of concrete|"
        "since the meltdown"),
    _topic("interest rates", "finance", "2018-02-01", 1.3,
        "the central bank|bond traders|rate setters|the bank's governor|mortgage brokers",
        "raised the key interest rate|left borrowing costs unchanged|signalled another rate increase|bought bonds|"
        "cut rates by a quarter point|kept money tight",
        "to bring inflation down|as yields on bonds climbed|after the meeting of the bank's council|"
        "by half a percentage point|on overnight loans"),
    _topic("stock market", "finance", "2018-02-06", 1.2,
        "investors|share traders|fund managers|day traders|shareholders",
        "sold shares worth {n} million|pushed the index to a record|prepared to list on the stock exchange|"
        "bought back shares|raised the dividend|bet on falling prices of shares",
        "as markets tumbled|after quarterly profits disappointed|in nervous trading|before the opening bell|"
        "at the annual general meeting"),
    _topic("public budget", "finance", "2018-02-12", 1.1,
        "the budget committee|auditors|the treasury|tax officers|the debt office",
        "approved spending of {n} million|borrowed more to cover the deficit|froze subsidies|"
        "raised taxes on high incomes|spent {pct} per cent more than planned|sold state property",
        "to limit public debt|as tax revenue fell short|in the supplementary budget|under the debt brake|"
        "at the taxpayer's expense"),
    _topic("international trade", "trade", "2018-02-07", 1.3,
        "trade negotiators|exporters|customs officers|the trade commissioner|the trade organisation",
        "imposed tariffs of {pct} per cent|signed a free trade agreement|filed a complaint about import duties|"
        "checked containers at the border|opened the market to foreign goods|set import quotas",
        "in the dispute over tariffs|as exports fell|under the trade agreement|at customs|"
        "with a trade surplus"),
    _topic("steel industry", "trade", "2018-02-08", 0.8,
        "steelworkers|the steelmaker|foundries|scrap smelters|rolling mills",
        "shut down a blast furnace|rolled fewer tonnes of steel|marched against the closure of the mill|"
        "switched a furnace from coke to electricity|cast {n} beams|merged two steel mills",
        "because cheap steel came from abroad|at the steelworks in {place}|as iron ore became dearer|"
        "in the coking plant|with red-hot slabs"),
    _topic("consumer prices", "trade", "2018-02-09", 1.1,
        "shoppers|supermarket chains|consumer advocates|discount stores|bargain hunters",
        "paid {pct} per cent more for groceries|cut spending on clothes|compared prices|"
        "filled smaller shopping baskets|returned {n} parcels|bought own-label products",
        "as prices in shops rose|despite discounts|before the holiday shopping season|at the checkout|"
        "with coupons"),
    _topic("labour market", "work and home", "2018-02-02", 1.4,
        "trade unions|employers|the employment agency|job seekers|apprentices",
        "called a strike over pay|agreed on wages {pct} per cent higher|counted {n} vacancies|sought skilled workers|"
        "shortened the working week|trained apprentices",
        "as unemployment fell|after the collective agreement ran out|because of a shortage of workers|"
        "on the minimum wage|in part-time jobs"),
    _topic("housing", "work and home", "2018-02-05", 1.4,
        "tenants|landlords|builders of flats|estate agents|squatters",
        "protested against rising rents|built {n} affordable flats|froze rents in {place}|"
        "bought houses at lower prices|gave notice to tenants|converted offices into flats",
        "as mortgages became dearer|in districts with few flats|because building permits took too long|"
        "on the waiting list for a flat|in tower blocks"),
    _topic("elections", "home affairs", "2018-02-13", 1.5,
        "voters|pollsters|the candidates|the election commission|campaign managers",
        "cast their ballots in {place}|gained {pct} per cent in the polls|demanded a recount|"
        "held a last campaign rally|voted by post|lost their seat by {n} votes",
        "before the run-off|as turnout fell|after polling stations closed|on the ballot paper|"
        "in the television debate"),
    _topic("migration", "home affairs", "2018-02-14", 1.2,
        "refugees|aid organisations|the asylum office|language teachers|unaccompanied minors",
        "registered {n} asylum seekers|rescued migrants from a boat|tightened border controls|"
        "opened a reception centre|taught {n} newcomers the language|sent people back",
        "on the route across the sea|while asylum claims are decided|at the border crossing|in a tent camp|"
        "with a residence permit"),
    _topic("defence", "foreign affairs", "2018-02-19", 1.0,
        "army commanders|the defence ministry|the alliance|recruits|the navy",
        "sent {n} troops to an exercise|ordered fighter jets|tested a missile|raised military spending|"
        "called up reservists|repaired {n} tanks",
        "near the eastern border|under a defence agreement|as tensions with the neighbour grew|in the barracks|"
        "with drones and artillery"),
    _topic("diplomacy", "foreign affairs", "2018-02-20", 1.1,
        "foreign ministers|diplomats|the ambassador|negotiators from both sides|the host of the talks",
        "mediated between the two sides|expelled {n} embassy staff|signed a declaration|"
        "resumed negotiations in {place}|reopened the consulate|recalled the ambassador",
        "after the ceasefire|in a phone call with counterparts|at the United Nations|with a handshake|"
        "in a diplomatic note"),
    _topic("courts", "law", "2018-02-15", 1.3,
        "judges|prosecutors|the constitutional court|the court of appeal|jurors",
        "sentenced the defendant to {n} months|overturned the verdict|heard the appeal|ruled that the law was invalid|"
        "adjourned the trial|acquitted two of the accused",
        "after a long trial|in a landmark ruling|for lack of evidence|in the courtroom|on appeal"),
    _topic("police", "law", "2018-02-16", 1.3,
        "police officers|detectives|the interior ministry|patrols|the riot squad",
        "arrested {n} suspects|searched flats in {place}|seized drugs and weapons|appealed for witnesses|"
        "cordoned off the square|chased a stolen car",
        "after a night of violence|in a raid at dawn|with the help of video recordings|at a checkpoint|"
        "with sniffer dogs"),
    _topic("corruption", "law", "2018-03-21", 0.9,
        "anti-corruption officers|whistle-blowers|a former minister|lobbyists|bribed officials",
        "took envelopes of cash|hid {n} million in foreign accounts|awarded contracts to friends|"
        "paid bribes for a building permit|published leaked documents|resigned over gifts",
        "in return for public contracts|through a letterbox company|on a yacht|under the transparency law|"
        "with false invoices"),
    _topic("software", "computing", "2018-02-21", 1.2,
        "programmers|the software firm|open source developers|testers|the cloud provider",
        "released an update for the app|moved services to the cloud|fixed errors in the code|"
        "offered an online platform|rewrote {n} lines of code|dropped support for old systems",
        "through an online portal|with a free app|after the update failed|in the source code|by subscription"),
    _topic("cybersecurity", "computing", "2018-02-22", 1.1,
        "hackers|security researchers|the computer emergency team|cryptographers|victims of phishing",
        "stole passwords of {n} accounts|closed a hole in the encryption|took servers offline|"
        "demanded a ransom for the encrypted files|traced malware to {place}|warned of forged emails",
        "after a cyberattack|through an infected email|until networks are restored|behind the firewall|"
        "on the dark web"),
    _topic("social media", "computing", "2018-02-23", 1.3,
        "influencers|moderators|the social network|teenagers with phones|followers",
        "deleted {n} fake accounts|spread a false rumour|blocked hateful posts|changed what users see in their feeds|"
        "shared a short video|lost {n} followers",
        "in posts shared {n} times|after a video went viral|under rules against hate speech|in the comments|"
        "with filtered photos"),
    _topic("computer chips", "hardware", "2018-02-26", 0.9,
        "chip makers|semiconductor suppliers|the foundry|designers of circuits|makers of lithography machines",
        "built a chip factory near {place}|delivered fewer processors|shrank transistors further|"
        "raised orders for silicon wafers|etched {n} layers|restricted exports of graphics processors",
        "as semiconductors remained scarce|with subsidies for chip plants|for phones and cars|on a silicon wafer|"
        "at nanometre scale"),
    _topic("robots", "hardware", "2018-03-22", 0.8,
        "robot makers|roboticists|warehouse workers|builders of drones|a humanoid robot",
        "replaced {n} welders by robots|taught a robot to grip eggs|delivered parcels by robot|"
        "programmed a robot arm|lost a robot race|let robots vacuum the hall",
        "with a gripper and cameras|beside human colleagues|on four legs|in the warehouse|without an operator"),
    _topic("railways", "journeys", "2018-02-27", 1.3,
        "train drivers|the railway company|track workers|conductors|station managers",
        "cancelled {n} trains|renewed tracks and signals|ordered sleeping cars|opened a high-speed line to {place}|"
        "coupled wagons by hand|closed a level crossing",
        "after a signal failure|at the central station|because train crews were on strike|on the platform|"
        "in the dining car"),
    _topic("air travel", "journeys", "2018-02-28", 1.3,
        "airlines|pilots|the airport|air traffic controllers|flight attendants",
        "grounded {n} aircraft|cancelled flights to {place}|lost luggage at the terminal|added a runway|"
        "diverted a jet|overbooked the flight",
        "as queues at security grew|because of fog at the airport|during a strike by cabin crews|on the runway|"
        "at cruising height"),
    _topic("shipping", "journeys", "2018-03-01", 1.0,
        "container lines|dockers|the port authority|sea captains|the coast guard",
        "unloaded {n} containers|rerouted ships around the cape|waited at anchor off {place}|dredged the harbour|"
        "launched a freighter|lost {n} containers overboard",
        "as freight rates doubled|because the canal was blocked|at the container terminal|on the high seas|"
        "under a flag of convenience"),
    _topic("road traffic", "roads", "2018-03-02", 1.1,
        "motorists|road builders|traffic police|cyclists|lorry drivers",
        "stood in a jam of {n} kilometres|lowered the speed limit|built protected lanes for bicycles|"
        "closed the bridge to lorries|filled potholes|removed traffic lights",
        "after a crash on the motorway|to make the roads safer|in the rush hour|at the crossroads|"
        "in heavy traffic"),
    _topic("electric cars", "roads", "2018-03-05", 1.2,
        "car makers|owners of electric cars|battery suppliers|car dealers|makers of charging points",
        "sold {pct} per cent more electric cars|installed {n} charging points|recalled cars with faulty batteries|"
        "stopped developing diesel engines|doubled the range of the battery|opened a battery factory in {place}",
        "with a larger battery|as purchase subsidies ended|at charging stations near {place}|on a single charge|"
        "instead of petrol"),
    _topic("tourism", "roads", "2018-03-06", 1.2,
        "hotel owners|holidaymakers|tour operators|guides|owners of beach bars",
        "booked {n} overnight stays|limited cruise visitors|charged day-trippers an entrance fee|"
        "offered tours of the old town|hired out deckchairs|filled the ski slopes",
        "in the high season|as beaches filled up|with bookings for {place}|with full board|at the seaside"),
    _topic("genetics", "research", "2018-03-07", 0.9,
        "geneticists|biologists|a sequencing laboratory|breeders of mice|experts on heredity",
        "decoded the genome|switched off a single gene in mice|compared the DNA of {n} families|"
        "edited the gene in stem cells|cloned a cell line|found a mutation",
        "with gene scissors|in inherited disorders|from a sample of DNA|on the X chromosome|in twins"),
    _topic("space missions", "research", "2018-03-08", 1.0,
        "the space agency|astronauts|mission controllers|rocket builders|satellite engineers",
        "launched a rocket with {n} satellites|docked at the space station|lost contact with the probe|"
        "landed on the moon|sent a rover to Mars|repaired an antenna on a spacewalk",
        "after the countdown was stopped twice|in orbit|from the launch pad|in weightlessness|on the way to Mars"),
    _topic("film", "arts", "2018-03-13", 1.0,
        "the director|actors|cinema owners|screenwriters|streaming services",
        "won the award for best film|shot the drama in {place}|premiered a documentary|showed {n} films on big screens|"
        "cut the film to two hours|dubbed a comedy",
        "at the film festival|in cinemas from Thursday|with an amateur cast|on the red carpet|in black and white"),
    _topic("museums", "arts", "2018-03-14", 0.9,
        "curators|the museum|art collectors|restorers|gallery owners",
        "showed {n} paintings for the first time|returned a looted bronze|restored a fresco|"
        "bought a sculpture at auction|hung a forgotten portrait|lent {n} drawings",
        "in the new wing of the museum|on loan from {place}|after the exhibition closed|behind glass|"
        "from the depot"),
    _topic("concerts", "arts", "2018-03-15", 0.9,
        "the orchestra|the singer|festival bands|the choir|a young pianist",
        "played the symphony to a full hall|released an album|cancelled the tour|drew {n} fans to an open-air stage|"
        "sang two encores|conducted without a score",
        "on the main stage|with a new conductor|at the opera in {place}|on period instruments|after the encore"),
    _topic("football", "contests", "2018-03-09", 1.5,
        "the striker|the goalkeeper|referees|the midfielder|the league",
        "scored twice in the second half|saved a penalty|won the derby two to one|showed a red card|"
        "hit the post|signed a forward for {n} million",
        "in the cup final|at the top of the league|during the transfer window|in stoppage time|"
        "from the penalty spot"),
    _topic("cycling races", "contests", "2018-03-12", 0.8,
        "the sprinter in yellow|the peloton|riders|the climber|team mechanics",
        "attacked on the last climb|won the time trial|crashed on wet cobbles|finished the stage {n} seconds behind|"
        "changed bikes|broke away from the bunch",
        "on the mountain stage|in the yellow jersey|over {n} kilometres|in the breakaway|with a flat tyre"),
    _topic("tennis", "contests", "2018-03-23", 0.8,
        "the top seed|the qualifier|the left-hander|ball boys|the umpire",
        "won in straight sets|saved {n} break points|served {n} aces|lost the tie-break|smashed a racket|"
        "came back from two sets down",
        "on centre court|on clay|in the fifth set|at the net|with a double fault"),
    # Also the past: mixtures that appeared before the demonstration begins.
    _mixture("cruise ships", "shipping|tourism", "2018-05-14", 0.9,
        "cruise lines|passengers on the upper deck|opponents of cruise ships",
        "moored three liners at once|cancelled a shore excursion|launched the largest liner so far",
        "on the sun deck|with {n} cabins|in front of the lagoon"),
    _mixture("insider trading", "stock market|courts", "2018-08-20", 0.8,
        "a former board member|the stock exchange supervisor|a trader on trial",
        "bought options before the takeover|earned {n} million with secret information|tipped off a friend",
        "hours before the announcement|with inside knowledge|from leaked figures"),
    _mixture("telemedicine", "hospitals|software", "2018-11-05", 0.9,
        "doctors on video|rural practices|makers of a medical app",
        "held {n} consultations by video|read heart rates from a watch|stored patient records online",
        "on the screen|from the sofa|far from the nearest practice"),
    _mixture("food fraud", "food safety|corruption", "2019-01-14", 0.8,
        "a gang of oil blenders|buyers of false saffron|customs chemists",
        "sold horse meat as beef|stretched honey with syrup|relabelled {n} tonnes of old meat",
        "with forged labels|under a false origin|from a backyard"),
    _mixture("sea rescue", "migration|shipping", "2019-03-18", 0.9,
        "the crew of the rescue ship|people in a rubber boat|the rescue coordination centre",
        "pulled {n} people from the water|waited for a safe port|answered a distress call",
        "in high waves|off the southern islands|after days at sea"),
    _mixture("arms exports", "defence|international trade", "2019-05-20", 0.8,
        "arms makers|the export control office|opponents of arms deals",
        "sold submarines to {place}|stopped a delivery of rifles|licensed arms worth {n} million",
        "to countries at war|with an end-use certificate|despite the embargo"),
    _mixture("doping", "cycling races|medicines", "2019-08-12", 0.8,
        "the anti-doping agency|a banned rider|urine testers",
        "tested positive for a banned substance|stored {n} blood bags|lost the title years later",
        "in the B sample|after a blood transfusion|with a forged certificate"),
    _mixture("self-driving cars", "road traffic|software|robots", "2019-10-07", 0.9,
        "safety drivers|makers of driverless taxis|test engineers on the road",
        "let the car steer itself|mistook a plastic bag for a child|drove {n} kilometres without a hand on the wheel",
        "with nobody in the front seat|with lidar on the roof|in a fenced test area"),
    # Arriving: mixtures of topics that are known already.
    _mixture("avian influenza", "animal health|infectious disease|poultry trade", "2020-01-20", 1.1,
        "keepers of ducks and geese|wardens of a bird sanctuary|a poultry disease laboratory",
        "collected dead wild birds|confirmed bird flu on {n} farms|ordered flocks to be kept indoors",
        "as migrating geese arrived|after the bird flu virus was found|in a zone of ten kilometres around the farm"),
    _mixture("night trains", "railways|tourism", "2020-03-09", 1.1,
        "passengers in couchettes|a start-up for sleeper trains|the night train operator",
        "brought back the overnight service to {place}|sold out the sleeping cars until autumn|added a dining car",
        "instead of a short flight|with breakfast on arrival|while they slept"),
    _mixture("ransomware in clinics", "cybersecurity|hospitals", "2020-05-11", 1.1,
        "the hospital's computer staff|hackers who target clinics|emergency doctors without computers",
        "wrote patient files by hand|could not open X-ray images|refused to pay for stolen patient records",
        "while ambulances were sent elsewhere|until records could be decrypted|on the third day without computers"),
    _mixture("election disinformation", "elections|social media", "2020-07-06", 1.0,
        "fact checkers|troll farms|election monitors",
        "debunked forged ballot papers|uncovered {n} pages with invented polls|labelled false claims about the vote",
        "days before the vote|in paid political adverts|in coordinated campaigns"),
    _mixture("microplastics", "waste and recycling|fisheries|water supply", "2020-09-14", 1.1,
        "oceanographers|toxicologists|a washing machine maker",
        "found tiny plastic particles in mussels|filtered fibres from the laundry|counted {n} particles in a litre",
        "from worn tyres and textiles|deep in sea sediment|in tap water"),
    _mixture("carbon border levy", "climate policy|international trade|steel industry", "2020-11-02", 1.1,
        "importers of cement|trade lawyers|heavy industry",
        "calculated the carbon content of imports|agreed on a levy for goods from high-emission countries|"
        "demanded free certificates",
        "to keep industry from moving abroad|at the external border|during a transition of {n} months"),
    _mixture("antibiotic resistance", "medicines|infectious disease|livestock", "2021-01-18", 1.0,
        "microbiologists|hygiene specialists|barn vets",
        "found resistant germs in {pct} per cent of samples|restricted reserve antibiotics|"
        "isolated a germ that no drug kills",
        "because antibiotics are overused in barns|on wards with weak patients|as last-resort drugs fail"),
    _mixture("short-term rentals", "housing|tourism", "2021-03-15", 1.0,
        "hosts of holiday flats|neighbours of tourist flats|rental platforms",
        "registered {n} holiday flats|limited lets to ninety nights a year|fined owners who let flats to tourists",
        "in the old town|where suitcases roll day and night|as flats turn into hotels"),
    _mixture("green hydrogen", "wind power|solar power|oil and gas", "2021-05-10", 1.0,
        "makers of electrolysers|hydrogen start-ups|a fertiliser plant",
        "split water with surplus power|converted a gas pipeline to hydrogen|ordered an electrolyser of {n} megawatts",
        "made from wind and sun|as a substitute for natural gas|for furnaces and ships"),
    _mixture("home batteries", "solar power|electricity grid|electric cars", "2021-07-12", 1.1,
        "households with a wallbox|makers of storage units|a street of neighbours",
        "stored sunshine for the evening|charged the car from the roof|sold spare power back at peak hours",
        "in the cellar|with a battery from an old car|almost independent of the grid"),
    _mixture("sanctions", "diplomacy|international trade", "2021-09-06", 1.1,
        "the sanctions committee|banks with frozen accounts|oligarchs",
        "froze assets worth {n} million|put {n} names on a list|stopped exports of dual-use goods",
        "in response to the invasion|through shell companies|in a further round of measures"),
    _mixture("gene therapy", "genetics|medicines", "2021-11-08", 1.1,
        "specialists for rare diseases|parents of sick children|a biotech company",
        "corrected a faulty gene in the patient's blood cells|treated the first child with a single infusion|"
        "asked two million for one treatment",
        "with a harmless virus as carrier|for a rare muscle disease|without further transfusions"),
    _mixture("port strikes", "shipping|labour market", "2022-01-17", 1.1,
        "crane operators|picket lines at the docks|the dockers' union",
        "stopped work at {n} berths|blocked the gates of the terminal|rejected automation of the cranes",
        "as ships queued outside the harbour|over overtime pay|for the longest walkout in {n} years"),
    _mixture("police face recognition", "police|software|courts", "2022-03-14", 1.1,
        "privacy lawyers|makers of surveillance cameras|civil rights groups",
        "scanned faces at the station|stopped a trial with smart cameras|sued over a database of {n} faces",
        "without a judge's order|after a mistaken arrest|in crowds"),
    _mixture("drought relief", "grain harvest|water supply|public budget", "2022-05-16", 1.1,
        "farmers with withered maize|irrigation associations|the relief fund",
        "paid {n} million to farms hit by drought|rationed irrigation|declared a crop emergency",
        "after the driest spring on record|while rivers ran dry|for fields without rain since March"),
    _mixture("food price caps", "consumer prices|public budget|grain harvest", "2022-07-11", 1.1,
        "bakers|corner shops|the price watchdog",
        "capped the price of bread and milk|emptied shelves of cooking oil|checked {n} shops for hidden increases",
        "as flour became dearer|until the cap runs out|for {n} basic products"),
    # Arriving: topics that resemble nothing that came before, and that no section covers.
    _topic("chess", "miscellany", "2020-04-13", 1.3,
        "the grandmaster|the challenger with the black pieces|chess prodigies|the world chess body|blindfold players",
        "sacrificed a bishop on move {n}|offered a draw in a rook endgame|blundered a pawn|mated in the Sicilian|"
        "castled too late|played {n} boards at once",
        "with seconds on the clock|in the candidates tournament|in a blitz game|with an extra knight|"
        "in the queen's gambit"),
    _topic("beekeeping", "miscellany", "2020-10-05", 1.3,
        "beekeepers|a queen breeder|hobby apiarists|honey makers|guardians of rooftop hives",
        "harvested {n} jars of honey|fought mites in the hives|caught a swarm|overwintered their colonies|"
        "melted wax into candles|moved {n} hives to the heath",
        "when the lime trees bloomed|on rooftop hives|with smoke and a veil|in the honeycomb|after a poor acacia year"),
    _topic("archaeology", "miscellany", "2021-02-08", 1.3,
        "archaeologists|excavators|a farmer with a metal detector|experts on pottery|divers at a wreck",
        "unearthed a Roman mosaic|dated the burial to the Bronze Age|dug up {n} silver coins|uncovered a temple wall|"
        "pieced an amphora together|deciphered an inscription",
        "under a car park|in a sealed tomb|beneath layers of clay|from the time of the pharaohs|"
        "with brush and trowel"),
    _topic("volcanoes", "miscellany", "2021-08-09", 1.3,
        "volcanologists|villagers below the crater|seismographs|hikers on the cone|the volcano observatory",
        "recorded {n} tremors|saw lava reach the road|fled from ash|measured sulphur near the summit|"
        "heard explosions in the crater|swept ash from roofs",
        "before the eruption|as magma rose|under a column of ash|on the slope of the crater|through a new fissure"),
    _topic("lottery", "miscellany", "2022-02-14", 1.3,
        "the lottery company|an unknown winner|holders of a ticket from {place}|kiosk owners|a syndicate of players",
        "drew the six numbers|hit the jackpot of {n} million|lost the winning ticket|shared the prize with colleagues|"
        "scratched a lucky card|played the same numbers for {n} years",
        "with the bonus ball|after {n} draws without a winner|at odds of one in many millions|"
        "in the Saturday draw|with five correct numbers"),
    _topic("sailing", "miscellany", "2022-06-13", 1.3,
        "the skipper|the crew of the catamaran|solo sailors|the helmsman|dinghy sailors",
        "lost the mast in a storm|rounded the horn under spinnaker|tacked past the buoy|won the regatta|"
        "reefed the sails|capsized twice",
        "in light winds|on foils|with a torn mainsail|against the tide|on the last leg of the regatta"),
    _topic("fashion", "miscellany", "2022-10-03", 1.3,
        "designers|models|the fashion house|tailors|owners of boutiques",
        "showed wide trousers and velvet coats|walked the runway|dyed silk with plants|revived the miniskirt|"
        "sewed {n} gowns|put sneakers under suits",
        "on the catwalk|in the spring collection|with sequins and lace|in pastel shades|made to measure"),
    _topic("astronomy", "miscellany", "2023-01-16", 1.3,
        "astronomers|an amateur with a telescope|the observatory|stargazers|cosmologists",
        "photographed a galaxy behind dust|discovered a planet around a dwarf star|timed a pulsar|named a comet|"
        "watched an eclipse|mapped {n} nebulae",
        "in infrared light|{n} light years away|on a moonless night|near the Milky Way|in the constellation Orion"),
)
# fmt: on
