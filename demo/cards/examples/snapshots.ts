import { claimNews } from "../../../src/features/snapshots/keep-snapshots.ts";
import { list } from "../../../src/commands/vm/list.ts";
import { renderCard } from "../../../src/core/cards/render-card.ts";
import { renderResult } from "../../../src/core/cards/render-result.ts";
import { snapshots } from "../../../src/features/snapshots/list-snapshots.ts";
import { restore } from "../../../src/features/snapshots/restore.ts";
import { snapshot } from "../../../src/features/snapshots/snapshot.ts";
import { examplesOfChange } from "../changes.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf, someOf } from "../reading.ts";
import { done, recordOf, stored } from "../requests.ts";

const input = { snapshot: "snap-42" };
const labels = { snapshot: "nightly" };

const known = ({ vm }: About) => {
  const of = { vmId: `vm-payments-${vm}`, vmName: vm, projectId: "prj-payments" };
  return [
    {
      ...of,
      id: "snap-42",
      name: "nightly",
      by: "U0OLIVIA",
      at: at - 82_000,
      measurement: "ab".repeat(48),
    },
    { ...of, id: "snap-41", name: "", by: "U0AMIR", at: at - 86_400_000, isSafety: true },
  ];
};

const answers = (many: "some" | "none") => (about: About) => {
  const all = many === "some" ? known(about) : [];
  const reader = someOf<ReturnType<typeof readingOf>["snapshots"]>({ of: async () => all });
  const reading = readingOf(about, [list, snapshots], { snapshots: reader });
  return answerOf(snapshots, { vm: about.vm }, reading);
};

export const examples: readonly Example[] = [
  ...examplesOfChange(snapshot, { input: { name: "nightly" } }),
  ...examplesOfChange(restore, { input, labels }),
  {
    name: "a request to restore",
    reader: "approver",
    make: (about) => {
      const over = { command: "vm restore", input, labels, snapshotAt: at - 82_000 };
      return renderCard(stored(about, { record: recordOf(about, over) }), restore);
    },
    push: "olivia asks to restore db-1 (payments) from nightly: “bad migration”. Data written in the 1 min 22 s before the request is lost. 15 min to decide.",
  },
  {
    name: "a result that can't be confirmed",
    reader: "requester",
    make: (about) =>
      renderResult(done(about, { command: "vm snapshot", input: { name: "nightly" } }), snapshot),
    push: "⚠️ Snapshot of db-1 as nightly was accepted by the compute service; nothing more can be confirmed.",
  },
  { name: "/vm snapshots", make: answers("some") },
  { name: "/vm snapshots, without any", make: answers("none") },
  {
    name: "an ID of a snapshot that somebody must confirm",
    reader: "audit channel",
    make: (about) =>
      claimNews(stored(about, { record: recordOf(about, { input: { name: "nightly" } }) }), {
        id: "snap-42",
        by: about.who,
      }),
    push: "olivia says that the snapshot nightly of db-1 has the ID snap-42.",
  },
];
