"""The word banks of the embedded news corpus: sections, topics, and what their sentences are made of.

A sentence is an actor, an action and sometimes a detail. ``{place}``, ``{n}`` and ``{pct}`` are filled in when the
sentence is made. Fragments of one bank are separated by bars. Topics with parents are mixtures: they borrow most of
their sentences from them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLOSINGS", "OPENINGS", "PLACES", "SECTIONS", "TOPICS", "Bank", "Topic"]


@dataclass(frozen=True)
class Bank:
    """Fragments: who, did what, and under which circumstances."""

    actors: tuple[str, ...]
    actions: tuple[str, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """A topic: where it belongs, the day it first appears, how often it is written about, and its fragments."""

    name: str
    section: str
    first_day: str
    weight: float
    bank: Bank
    parents: tuple[str, ...] = ()


def _fragments(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _bank(actors: str, actions: str, details: str) -> Bank:
    return Bank(_fragments(actors), _fragments(actions), _fragments(details))


def _topic(name: str, section: str, first_day: str, weight: float, banks: tuple[str, str, str], *parents: str) -> Topic:
    return Topic(name, section, first_day, weight, _bank(*banks), parents)


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
        "published the results in a journal|analysed {n} samples|repeated the experiment|found traces that are "
        "older than thought|announced a discovery|received a grant of {n} million|questioned an earlier finding",
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
    "leisure": _bank(
        "members of the association|beginners and experts|organisers|enthusiasts from {place}|a retired teacher",
        "met for the annual gathering|founded a new club|shared their experience|counted {n} participants|"
        "won a local prize|opened their doors to the public|taught a course",
        "on a sunny weekend|in a village hall|for the tenth time|with friends from {place}",
    ),
}

# fmt: off
TOPICS: tuple[Topic, ...] = (
    # The past: topics that are there from the first year on.
    _topic("infectious disease", "health", "2018-01-02", 1.5, (
        "epidemiologists|the disease control centre|virologists",
        "traced the outbreak to a market|confirmed {n} infections with the virus|found a new strain of the virus|"
        "put contacts of the infected in quarantine",
        "as the epidemic spread|after laboratory tests were positive|while the incubation period lasts")),
    _topic("vaccination", "health", "2018-01-03", 1.0, (
        "immunologists|vaccination centres|the vaccine maker",
        "delivered {n} doses of the vaccine|recommended a booster shot|"
        "reported strong antibodies after the second dose|"
        "extended the immunisation campaign to schools",
        "to protect against the virus|before the vaccination season|as vaccine stocks ran low")),
    _topic("hospitals", "health", "2018-01-04", 1.4, (
        "the hospital association|surgeons|emergency wards",
        "closed beds in intensive care|postponed operations|moved patients to another ward|opened a surgical unit",
        "as emergency rooms filled up|because nursing shifts could not be staffed|after the merger of two hospitals")),
    _topic("mental health", "health", "2018-01-05", 0.8, (
        "psychologists|therapists|counsellors at schools",
        "reported long waiting lists for therapy|offered counselling to teenagers|linked depression to loneliness|"
        "trained teachers to recognise anxiety",
        "after a rise in burnout|for people with depression|through a crisis line")),
    _topic("nutrition", "health", "2018-01-08", 0.7, (
        "dieticians|school canteens|nutrition researchers",
        "advised less sugar and salt|linked the diet to heart disease|served more vegetables|measured vitamin levels",
        "in a study of eating habits|to reduce obesity|as part of a balanced diet")),
    _topic("medicines", "health", "2018-01-09", 1.0, (
        "the medicines agency|the drug maker|pharmacists",
        "approved a new drug|withdrew the tablets from sale|reported side effects in {n} patients|"
        "reported a shortage of antibiotics",
        "after a clinical trial|at pharmacies in {place}|until the licence is renewed")),
    _topic("animal health", "farming", "2018-01-10", 1.0, (
        "veterinarians|the animal health service|a district vet",
        "culled {n} infected animals|sealed off the farm|tested the herd for the disease|"
        "ordered cattle to be kept inside",
        "inside a surveillance zone|after sick animals were found|until the herd is free of disease")),
    _topic("poultry trade", "farming", "2018-01-11", 0.8, (
        "poultry farmers|egg producers|chicken exporters",
        "shipped fewer chickens abroad|raised the price of eggs|lost buyers for turkeys and ducks|"
        "rebuilt laying flocks",
        "as egg prices reached a record|after buyers banned poultry imports|"
        "before the export season for chicken meat")),
    _topic("grain harvest", "farming", "2018-01-12", 1.0, (
        "grain traders|wheat growers|combine drivers",
        "brought in the smallest wheat harvest for {n} years|stored maize in silos|sowed barley instead of wheat|"
        "cut the estimate for the crop by {pct} per cent",
        "as yields fell|because fields were too dry|while wheat futures climbed")),
    _topic("livestock", "farming", "2018-01-15", 0.9, (
        "cattle breeders|pig farmers|dairy farms",
        "reduced their herds|protested against low milk prices|moved cattle to higher pastures|"
        "built larger barns for pigs",
        "as slaughter prices fell|under rules on animal welfare|in the dairy sector")),
    _topic("fisheries", "farming", "2018-01-16", 0.8, (
        "fishing crews|trawler owners|marine biologists",
        "landed {pct} per cent less cod|argued over catch quotas|returned to port with empty nets|"
        "counted fewer herring in the spawning grounds",
        "under the new fishing quota|as fish stocks shrank|off the coast near {place}")),
    _topic("food safety", "farming", "2018-01-17", 0.8, (
        "food inspectors|the food safety authority|a supermarket laboratory",
        "recalled cheese because of listeria|found salmonella in {n} samples|closed a kitchen for poor hygiene|"
        "traced the contaminated product to a factory",
        "after customers fell ill|before it reached the shelves|with a public warning")),
    _topic("climate policy", "environment", "2018-01-18", 1.4, (
        "climate negotiators|the climate council|emission experts",
        "agreed to halve greenhouse gas emissions|set a price on carbon|missed the climate target by {pct} per cent|"
        "presented a path to net zero",
        "at the climate conference|under the Paris agreement|to cut carbon emissions")),
    _topic("water supply", "environment", "2018-01-19", 1.0, (
        "water companies|hydrologists|the waterworks",
        "rationed drinking water|found reservoirs {pct} per cent full|drilled wells for groundwater|"
        "repaired leaking pipes",
        "as the drought continued|to save water|because groundwater levels fell")),
    _topic("floods", "environment", "2018-01-22", 0.9, (
        "rescue teams|the flood warning centre|residents of flooded streets",
        "filled sandbags along the river|evacuated {n} homes after heavy rain|watched the dykes|"
        "pumped water out of cellars",
        "as the river rose|after days of rain|when a dam threatened to break")),
    _topic("forest fires", "environment", "2018-01-23", 0.8, (
        "firefighters|forest wardens|crews of water bombers",
        "fought flames on several fronts|brought a blaze near {place} under control|evacuated a campsite|"
        "cut firebreaks through the pines",
        "as strong winds fanned the flames|after weeks of drought and heat|while smoke covered the valley")),
    _topic("biodiversity", "environment", "2018-01-24", 0.8, (
        "ecologists|bird watchers|the nature conservation union",
        "counted fewer insects and wild birds|released lynx into the forest|restored {n} hectares of wetland|"
        "added the species to the red list",
        "as habitats disappear|in the nature reserve|to protect endangered species")),
    _topic("waste and recycling", "environment", "2018-01-25", 0.8, (
        "recycling firms|waste collectors|sorting plants",
        "burned plastic that could be recycled|introduced a deposit on bottles|collected {n} tonnes of packaging|"
        "refused dirty household waste",
        "as landfills fill up|to reduce plastic packaging|under the recycling quota")),
    _topic("oil and gas", "energy", "2018-01-26", 1.2, (
        "oil producers|the pipeline operator|gas importers",
        "cut production by {n} barrels a day|filled gas storage to {pct} per cent|halted flows through the pipeline|"
        "began drilling in a new field",
        "as crude prices rose|after a leak in the pipeline|while tankers with liquefied gas queued")),
    _topic("solar power", "energy", "2018-01-29", 0.9, (
        "solar installers|makers of panels|owners of rooftops",
        "mounted solar panels on {n} roofs|built a solar park near {place}|imported cheaper photovoltaic modules|"
        "waited months for an inverter",
        "on sunny days|thanks to feed-in tariffs|as panels became cheaper")),
    _topic("wind power", "energy", "2018-01-30", 0.9, (
        "turbine makers|wind farm developers|opponents of turbines",
        "erected {n} turbines offshore|won the tender for a wind farm|replaced old rotors|"
        "argued about the distance to homes",
        "in strong winds|in shallow waters off {place}|after the permit for the turbines was granted")),
    _topic("electricity grid", "energy", "2018-01-31", 0.9, (
        "grid operators|the transmission company|technicians at the substation",
        "built a high-voltage line to {place}|prevented a blackout|stabilised the grid with reserve plants|"
        "installed {n} smart meters",
        "because of bottlenecks in the grid|after a power cut|when demand peaked in the evening")),
    _topic("interest rates", "economy", "2018-02-01", 1.2, (
        "the central bank|bond traders|rate setters",
        "raised the key interest rate|left borrowing costs unchanged|signalled another rate increase|bought bonds",
        "to bring inflation down|as yields on bonds climbed|after the meeting of the bank's council")),
    _topic("labour market", "economy", "2018-02-02", 1.3, (
        "trade unions|employers|the employment agency",
        "called a strike over pay|agreed on wages {pct} per cent higher|counted {n} vacancies|sought skilled workers",
        "as unemployment fell|after the collective agreement ran out|because of a shortage of workers")),
    _topic("housing", "economy", "2018-02-05", 1.3, (
        "tenants|landlords|builders of flats",
        "protested against rising rents|built {n} affordable flats|froze rents in {place}|"
        "bought houses at lower prices",
        "as mortgages became dearer|in districts with few flats|because building permits took too long")),
    _topic("stock market", "economy", "2018-02-06", 1.1, (
        "investors|share traders|fund managers",
        "sold shares worth {n} million|pushed the index to a record|prepared to list on the stock exchange|"
        "bought back shares",
        "as markets tumbled|after quarterly profits disappointed|in nervous trading")),
    _topic("international trade", "economy", "2018-02-07", 1.2, (
        "trade negotiators|exporters|customs officers",
        "imposed tariffs of {pct} per cent|signed a free trade agreement|filed a complaint about import duties|"
        "checked containers at the border",
        "in the dispute over tariffs|as exports fell|under the trade agreement")),
    _topic("steel industry", "economy", "2018-02-08", 0.6, (
        "steelworkers|the steelmaker|foundries",
        "shut down a blast furnace|rolled fewer tonnes of steel|marched against the closure of the mill|"
        "switched a furnace from coke to electricity",
        "because cheap steel came from abroad|at the steelworks in {place}|as iron ore became dearer")),
    _topic("consumer prices", "economy", "2018-02-09", 1.0, (
        "shoppers|supermarket chains|consumer advocates",
        "paid {pct} per cent more for groceries|cut spending on clothes|compared prices|"
        "filled smaller shopping baskets",
        "as prices in shops rose|despite discounts|before the holiday shopping season")),
    _topic("public budget", "economy", "2018-02-12", 1.0, (
        "the budget committee|auditors|the treasury",
        "approved spending of {n} million|borrowed more to cover the deficit|froze subsidies|"
        "raised taxes on high incomes",
        "to limit public debt|as tax revenue fell short|in the supplementary budget")),
    _topic("elections", "politics", "2018-02-13", 1.4, (
        "voters|pollsters|the candidates",
        "cast their ballots in {place}|gained {pct} per cent in the polls|demanded a recount|"
        "held a last campaign rally",
        "before the run-off|as turnout fell|after polling stations closed")),
    _topic("migration", "politics", "2018-02-14", 1.1, (
        "refugees|aid organisations|the asylum office",
        "registered {n} asylum seekers|rescued migrants from a boat|tightened border controls|"
        "opened a reception centre",
        "on the route across the sea|while asylum claims are decided|at the border crossing")),
    _topic("courts", "politics", "2018-02-15", 1.2, (
        "judges|prosecutors|the constitutional court",
        "sentenced the defendant to {n} months|overturned the verdict|heard the appeal|ruled that the law was invalid",
        "after a long trial|in a landmark ruling|for lack of evidence")),
    _topic("police", "politics", "2018-02-16", 1.1, (
        "police officers|detectives|the interior ministry",
        "arrested {n} suspects|searched flats in {place}|seized drugs and weapons|appealed for witnesses",
        "after a night of violence|in a raid at dawn|with the help of video recordings")),
    _topic("defence", "politics", "2018-02-19", 0.9, (
        "army commanders|the defence ministry|the alliance",
        "sent {n} troops to an exercise|ordered fighter jets|tested a missile|raised military spending",
        "near the eastern border|under a defence agreement|as tensions with the neighbour grew")),
    _topic("diplomacy", "politics", "2018-02-20", 1.0, (
        "foreign ministers|diplomats|the ambassador",
        "mediated between the two sides|expelled {n} embassy staff|signed a declaration|"
        "resumed negotiations in {place}",
        "after the ceasefire|in a phone call with counterparts|at the United Nations")),
    _topic("software", "technology", "2018-02-21", 1.0, (
        "programmers|the software firm|open source developers",
        "released an update for the app|moved services to the cloud|fixed errors in the code|"
        "offered an online platform",
        "through an online portal|with a free app|after the update failed")),
    _topic("cybersecurity", "technology", "2018-02-22", 1.0, (
        "hackers|security researchers|the computer emergency team",
        "stole passwords of {n} accounts|closed a hole in the encryption|took servers offline|"
        "demanded a ransom for the encrypted files",
        "after a cyberattack|through an infected email|until networks are restored")),
    _topic("social media", "technology", "2018-02-23", 1.1, (
        "influencers|moderators|the social network",
        "deleted {n} fake accounts|spread a false rumour|blocked hateful posts|changed what users see in their feeds",
        "in posts shared {n} times|after a video went viral|under rules against hate speech")),
    _topic("computer chips", "technology", "2018-02-26", 0.8, (
        "chip makers|semiconductor suppliers|the foundry",
        "built a chip factory near {place}|delivered fewer processors|shrank transistors further|"
        "raised orders for silicon wafers",
        "as semiconductors remained scarce|with subsidies for chip plants|for phones and cars")),
    _topic("railways", "transport", "2018-02-27", 1.1, (
        "train drivers|the railway company|track workers",
        "cancelled {n} trains|renewed tracks and signals|ordered sleeping cars|opened a high-speed line to {place}",
        "after a signal failure|at the central station|because train crews were on strike")),
    _topic("air travel", "transport", "2018-02-28", 1.1, (
        "airlines|pilots|the airport",
        "grounded {n} aircraft|cancelled flights to {place}|lost luggage at the terminal|added a runway",
        "as queues at security grew|because of fog at the airport|during a strike by cabin crews")),
    _topic("shipping", "transport", "2018-03-01", 0.9, (
        "container lines|dockers|the port authority",
        "unloaded {n} containers|rerouted ships around the cape|waited at anchor off {place}|dredged the harbour",
        "as freight rates doubled|because the canal was blocked|at the container terminal")),
    _topic("road traffic", "transport", "2018-03-02", 1.0, (
        "motorists|road builders|traffic police",
        "stood in a jam of {n} kilometres|lowered the speed limit|built protected lanes for bicycles|"
        "closed the bridge to lorries",
        "after a crash on the motorway|to make the roads safer|in the rush hour")),
    _topic("electric cars", "transport", "2018-03-05", 1.0, (
        "car makers|owners of electric cars|battery suppliers",
        "sold {pct} per cent more electric cars|installed {n} charging points|recalled cars with faulty batteries|"
        "stopped developing diesel engines",
        "with a larger battery|as purchase subsidies ended|at charging stations near {place}")),
    _topic("tourism", "transport", "2018-03-06", 1.1, (
        "hotel owners|holidaymakers|tour operators",
        "booked {n} overnight stays|limited cruise visitors|charged day-trippers an entrance fee|"
        "offered tours of the old town",
        "in the high season|as beaches filled up|with bookings for {place}")),
    _topic("genetics", "science", "2018-03-07", 0.7, (
        "geneticists|biologists|a sequencing laboratory",
        "decoded the genome|switched off a single gene in mice|compared the DNA of {n} families|"
        "edited the gene in stem cells",
        "with gene scissors|in inherited disorders|from a sample of DNA")),
    _topic("space missions", "science", "2018-03-08", 0.8, (
        "the space agency|astronauts|mission controllers",
        "launched a rocket with {n} satellites|docked at the space station|lost contact with the probe|"
        "landed on the moon",
        "after the countdown was stopped twice|in orbit|from the launch pad")),
    _topic("football", "sport", "2018-03-09", 1.2, (
        "the striker|the goalkeeper|referees",
        "scored twice in the second half|saved a penalty|won the derby two to one|showed a red card",
        "in the cup final|at the top of the league|during the transfer window")),
    _topic("cycling races", "sport", "2018-03-12", 0.7, (
        "the sprinter in yellow|the peloton|riders",
        "attacked on the last climb|won the time trial|crashed on wet cobbles|finished the stage {n} seconds behind",
        "on the mountain stage|in the yellow jersey|over {n} kilometres")),
    _topic("film", "culture", "2018-03-13", 0.9, (
        "the director|actors|cinema owners",
        "won the award for best film|shot the drama in {place}|premiered a documentary|showed {n} films on big screens",
        "at the film festival|in cinemas from Thursday|with an amateur cast")),
    _topic("museums", "culture", "2018-03-14", 0.8, (
        "curators|the museum|art collectors",
        "showed {n} paintings for the first time|returned a looted bronze|restored a fresco|"
        "bought a sculpture at auction",
        "in the new wing of the museum|on loan from {place}|after the exhibition closed")),
    _topic("concerts", "culture", "2018-03-15", 0.8, (
        "the orchestra|the singer|festival bands",
        "played the symphony to a full hall|released an album|cancelled the tour|drew {n} fans to an open-air stage",
        "on the main stage|with a new conductor|at the opera in {place}")),
    # Arriving: mixtures of topics that are known already.
    _topic("avian influenza", "farming", "2020-01-20", 0.8, (
        "keepers of ducks and geese|wardens of a bird sanctuary|a poultry disease laboratory",
        "collected dead wild birds|confirmed bird flu on {n} farms|ordered flocks to be kept indoors",
        "as migrating geese arrived|after the bird flu virus was found|in a zone of ten kilometres around the farm"),
        "animal health", "infectious disease", "poultry trade"),
    _topic("night trains", "transport", "2020-03-09", 0.5, (
        "passengers in couchettes|a start-up for sleeper trains|the night train operator",
        "brought back the overnight service to {place}|sold out the sleeping cars until autumn|added a dining car",
        "instead of a short flight|with breakfast on arrival|while they slept"),
        "railways", "tourism"),
    _topic("ransomware in clinics", "technology", "2020-05-11", 0.5, (
        "the hospital's computer staff|hackers who target clinics|emergency doctors without computers",
        "wrote patient files by hand|could not open X-ray images|refused to pay for stolen patient records",
        "while ambulances were sent elsewhere|until records could be decrypted|on the third day without computers"),
        "cybersecurity", "hospitals"),
    _topic("election disinformation", "politics", "2020-07-06", 0.7, (
        "fact checkers|troll farms|election monitors",
        "debunked forged ballot papers|uncovered {n} pages with invented polls|labelled false claims about the vote",
        "days before the vote|in paid political adverts|in coordinated campaigns"),
        "elections", "social media"),
    _topic("microplastics", "environment", "2020-09-14", 0.5, (
        "oceanographers|toxicologists|a washing machine maker",
        "found tiny plastic particles in mussels|filtered fibres from the laundry|counted {n} particles in a litre",
        "from worn tyres and textiles|deep in sea sediment|in tap water"),
        "waste and recycling", "fisheries", "water supply"),
    _topic("carbon border levy", "economy", "2020-11-02", 0.5, (
        "importers of cement|trade lawyers|heavy industry",
        "calculated the carbon content of imports|agreed on a levy for goods from high-emission countries|"
        "demanded free certificates",
        "to keep industry from moving abroad|at the external border|during a transition of {n} months"),
        "climate policy", "international trade", "steel industry"),
    _topic("antibiotic resistance", "health", "2021-01-18", 0.6, (
        "microbiologists|hygiene specialists|barn vets",
        "found resistant germs in {pct} per cent of samples|restricted reserve antibiotics|"
        "isolated a germ that no drug kills",
        "because antibiotics are overused in barns|on wards with weak patients|as last-resort drugs fail"),
        "medicines", "infectious disease", "livestock"),
    _topic("short-term rentals", "economy", "2021-03-15", 0.6, (
        "hosts of holiday flats|neighbours of tourist flats|rental platforms",
        "registered {n} holiday flats|limited lets to ninety nights a year|fined owners who let flats to tourists",
        "in the old town|where suitcases roll day and night|as flats turn into hotels"),
        "housing", "tourism"),
    _topic("green hydrogen", "energy", "2021-05-10", 0.6, (
        "makers of electrolysers|hydrogen start-ups|a fertiliser plant",
        "split water with surplus power|converted a gas pipeline to hydrogen|ordered an electrolyser of {n} megawatts",
        "made from wind and sun|as a substitute for natural gas|for furnaces and ships"),
        "wind power", "solar power", "oil and gas"),
    _topic("home batteries", "energy", "2021-07-12", 0.4, (
        "households with a wallbox|makers of storage units|a street of neighbours",
        "stored sunshine for the evening|charged the car from the roof|sold spare power back at peak hours",
        "in the cellar|with a battery from an old car|almost independent of the grid"),
        "solar power", "electricity grid", "electric cars"),
    _topic("sanctions", "politics", "2021-09-06", 0.8, (
        "the sanctions committee|banks with frozen accounts|oligarchs",
        "froze assets worth {n} million|put {n} names on a list|stopped exports of dual-use goods",
        "in response to the invasion|through shell companies|in a further round of measures"),
        "diplomacy", "international trade"),
    _topic("gene therapy", "health", "2021-11-08", 0.5, (
        "specialists for rare diseases|parents of sick children|a biotech company",
        "corrected a faulty gene in the patient's blood cells|treated the first child with a single infusion|"
        "asked two million for one treatment",
        "with a harmless virus as carrier|for a rare muscle disease|without further transfusions"),
        "genetics", "medicines"),
    _topic("port strikes", "transport", "2022-01-17", 0.4, (
        "crane operators|picket lines at the docks|the dockers' union",
        "stopped work at {n} berths|blocked the gates of the terminal|rejected automation of the cranes",
        "as ships queued outside the harbour|over overtime pay|for the longest walkout in {n} years"),
        "shipping", "labour market"),
    _topic("police face recognition", "technology", "2022-03-14", 0.4, (
        "privacy lawyers|makers of surveillance cameras|civil rights groups",
        "scanned faces at the station|stopped a trial with smart cameras|sued over a database of {n} faces",
        "without a judge's order|after a mistaken arrest|in crowds"),
        "police", "software", "courts"),
    _topic("drought relief", "farming", "2022-05-16", 0.5, (
        "farmers with withered maize|irrigation associations|the relief fund",
        "paid {n} million to farms hit by drought|rationed irrigation|declared a crop emergency",
        "after the driest spring on record|while rivers ran dry|for fields without rain since March"),
        "grain harvest", "water supply", "public budget"),
    _topic("food price caps", "economy", "2022-07-11", 0.5, (
        "bakers|corner shops|the price watchdog",
        "capped the price of bread and milk|emptied shelves of cooking oil|checked {n} shops for hidden increases",
        "as flour became dearer|until the cap runs out|for {n} basic products"),
        "consumer prices", "public budget", "grain harvest"),
    # Arriving: topics that resemble nothing that came before.
    _topic("chess", "leisure", "2020-04-13", 0.5, (
        "the grandmaster|the challenger with the black pieces|chess prodigies",
        "sacrificed a bishop on move {n}|offered a draw in a rook endgame|blundered a pawn|mated in the Sicilian",
        "with seconds on the clock|in the candidates tournament|in a blitz game")),
    _topic("beekeeping", "leisure", "2020-10-05", 0.4, (
        "beekeepers|a queen breeder|hobby apiarists",
        "harvested {n} jars of honey|fought mites in the hives|caught a swarm|overwintered their colonies",
        "when the lime trees bloomed|on rooftop hives|with smoke and a veil")),
    _topic("archaeology", "science", "2021-02-08", 0.6, (
        "archaeologists|excavators|a farmer with a metal detector",
        "unearthed a Roman mosaic|dated the burial to the Bronze Age|dug up {n} silver coins|uncovered a temple wall",
        "under a car park|in a sealed tomb|beneath layers of clay")),
    _topic("volcanoes", "science", "2021-08-09", 0.4, (
        "volcanologists|villagers below the crater|seismographs",
        "recorded {n} tremors|saw lava reach the road|fled from ash|measured sulphur near the summit",
        "before the eruption|as magma rose|under a column of ash")),
    _topic("lottery", "leisure", "2022-02-14", 0.4, (
        "the lottery company|an unknown winner|holders of a ticket from {place}",
        "drew the six numbers|hit the jackpot of {n} million|lost the winning ticket|shared the prize with colleagues",
        "with the bonus ball|after {n} draws without a winner|at odds of one in many millions")),
    _topic("sailing", "sport", "2022-06-13", 0.4, (
        "the skipper|the crew of the catamaran|solo sailors",
        "lost the mast in a storm|rounded the horn under spinnaker|tacked past the buoy|won the regatta",
        "in light winds|on foils|with a torn mainsail")),
    _topic("fashion", "culture", "2022-10-03", 0.5, (
        "designers|models|the fashion house",
        "showed wide trousers and velvet coats|walked the runway|dyed silk with plants|revived the miniskirt",
        "on the catwalk|in the spring collection|with sequins and lace")),
    _topic("astronomy", "science", "2023-01-16", 0.5, (
        "astronomers|an amateur with a telescope|the observatory",
        "photographed a galaxy behind dust|discovered a planet around a dwarf star|timed a pulsar|named a comet",
        "in infrared light|{n} light years away|on a moonless night")),
)
# fmt: on
