import { wordsIn } from "../../sandbox/slack/acts/index.ts";
import type { Tour } from "./tour.ts";

const people = ({ world }: Tour) => ({
  mia: world.slack.person("mia"),
  noor: world.slack.person("noor"),
  ben: world.slack.person("ben"),
});

/** A permalink, with words of its own. */
const linked = /https?:[^|"]+\/archives\/[^|"]+\|(open|open its card)>/;

/** The other team, and somebody of none. What they ask for waits while the night goes on. */
export const otherTeamSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const { mia, ben } = people(tour);
    tour.scene(
      "Two teams share this Gatehouse. Mia is on call for search: what payments has doesn't exist for her.",
    );
    await tour.types(mia, "search", "/vm restart web-2");
    await tour.sees(mia, "search", /There is no VM called web-2/);
    await tour.types(ben, "random", "/vm list");
    const list = JSON.stringify(await tour.sees(ben, "random", /vault-1/));
    tour.holds("Ben, of neither team, sees what neither has", !/web-|index-|ledger-/.test(list));
  },
  async (tour) => {
    const { mia, noor } = people(tour);
    tour.scene(
      "Mia asks for a restart in #status. Search wants its lead's yes: the card goes to #search.",
    );
    await tour.types(mia, "status", "/vm restart index-1");
    const asked = await tour.sees(mia, "status", /Restart index-1[\s\S]*open its card/);
    const card = await tour.sees(noor, "search", /Restart index-1[\s\S]*in #status \(open\)/);
    tour.holds(
      "each links to the other",
      [asked, card].every((one) => linked.test(JSON.stringify(one))),
    );
  },
];

/** Their lead decides. */
export const leadSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const { mia, noor } = people(tour);
    tour.scene(
      "Half of the time for Mia's restart has passed: its thread says so, once. Noor reviews it from Home.",
    );
    await tour.sees(noor, "search", /Half of the time has passed/);
    await noor.opensHome();
    await tour.until("Noor's Home shows what waits for her", noor, () =>
      /Restart\W+index-1\W+in search, requested/.test(
        wordsIn(noor.sees().home?.blocks ?? []).join("\n"),
      ),
    );
    await tour.presses(noor, "Review", "home");
    await tour.until("Her Home shows the facts, and asks for her vote", noor, () =>
      wordsIn(noor.sees().home?.blocks ?? [])
        .join("\n")
        .includes("Approve"),
    );
    await tour.presses(noor, "Approve", "home");
    await tour.sees(mia, "status", /✅ (@mia )?Restarted index-1/);
    await tour.sees(noor, "search", /✅ mia: [\s\S]*Sent .* read/);
  },
];
