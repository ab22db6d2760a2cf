import { expect, it } from "vitest";
import { denied, recordOf, stageOf, stored } from "../../../demo/cards/requests.ts";
import { placeOn, placementsOf } from "../../../src/core/deliver/placements.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import type { Delivered, StoredRequest } from "../../../src/core/request/stored-request.ts";

const about = { who: "olivia", vm: "web-1", why: "it hangs" };
const ofTeam = { teamChannel: "C0PAYMENTS" };
const plain = { isPlain: true };
const { approval: needed, ...unapproved } = recordOf(about);
const reminded = needed ? { approval: { ...needed, remindsAt: 1 } } : {};

/** Returns a request that needs an approval, or that is plain. */
const requestIn = (
  stage: Stage,
  { isPlain = false, ...record }: Partial<RequestRecord> & { isPlain?: boolean } = {},
  delivered: Partial<Delivered> = {},
): StoredRequest =>
  stored(
    about,
    {
      record: { ...(isPlain ? unapproved : recordOf(about)), ...record },
      delivered: { marks: {}, ...delivered },
    },
    stage,
  );

/** Returns the messages in order, each as `<key> <channel>`. */
const owedBy = (request: StoredRequest) =>
  placementsOf(request).map(({ key, side }) => `${key} ${placeOn(side, request).channelId}`);

const unknownOnce = stageOf("unknown", { reminders: 1 });
const expired = stageOf("expired");
const [denial] = denied(about).votes;
if (!denial) throw new Error("nobody denied it");

it.for<[title: string, request: StoredRequest, owed: readonly string[]]>([
  ["a draft has a card", requestIn(stageOf("draft")), ["card C01OPS"]],
  [
    "a reminder follows half way",
    requestIn(stageOf("draft", { isHalfWay: true })),
    ["card C01OPS", "half-way C01OPS"],
  ],
  ["an end has a result", requestIn(stageOf("done"), plain), ["card C01OPS", "result C01OPS"]],
  [
    "the team of a VM hears of an outcome that is unknown, though it didn't decide",
    requestIn(unknownOnce, { ...plain, ...ofTeam }),
    [
      "card C01OPS",
      "unknown C01OPS",
      "reminder-1 C01OPS",
      "unknown-elsewhere C0PAYMENTS",
      "reminder-1-elsewhere C0PAYMENTS",
    ],
  ],
  [
    "a team's closed channel hears nothing",
    requestIn(unknownOnce, { ...plain, ...ofTeam }, { isTeamClosed: true }),
    ["card C01OPS", "unknown C01OPS", "reminder-1 C01OPS"],
  ],
  [
    "a team that decides has the card, and a message stands where it was requested",
    requestIn(stageOf("draft"), ofTeam),
    ["card C0PAYMENTS", "asked C01OPS"],
  ],
  [
    "the end is told by the card of the team and where it was requested",
    requestIn(stageOf("done"), ofTeam),
    ["card C0PAYMENTS", "asked C01OPS", "result C0PAYMENTS", "answer C01OPS"],
  ],
  [
    "an unknown outcome is told by the card of the team and where it was requested",
    requestIn(stageOf("unknown"), ofTeam),
    ["card C0PAYMENTS", "asked C01OPS", "unknown C0PAYMENTS", "unknown-elsewhere C01OPS"],
  ],
  [
    "a card moves to where it was requested when the channel of the team is closed",
    requestIn(stageOf("draft"), ofTeam, { isTeamClosed: true }),
    ["card C01OPS"],
  ],
  [
    "where it was requested is closed: the requester is told in direct messages",
    requestIn(stageOf("done"), plain, { closedBy: "not_in_channel" }),
    ["card U0OLIVIA", "result U0OLIVIA"],
  ],
  [
    "the team keeps its card where only the channel of the request is closed",
    requestIn(stageOf("done"), ofTeam, { closedBy: "is_archived" }),
    ["card C0PAYMENTS", "asked U0OLIVIA", "result C0PAYMENTS", "answer U0OLIVIA"],
  ],
  [
    "a denial with a reason follows the result, once in the card's thread",
    { ...requestIn(stageOf("denied"), ofTeam), votes: [denial] },
    ["card C0PAYMENTS", "asked C01OPS", "result C0PAYMENTS", "denial C0PAYMENTS", "answer C01OPS"],
  ],
  [
    "a requester reads in a direct message that nobody approved in time",
    requestIn(expired, reminded),
    ["card C01OPS", "result C01OPS", "expired U0OLIVIA"],
  ],
  [
    "nobody reads that twice in direct messages",
    requestIn(expired, { ...reminded, channelId: "D0OLIVIA" }),
    ["card D0OLIVIA", "result D0OLIVIA"],
  ],
  [
    "nor when the channel is closed",
    requestIn(expired, reminded, { closedBy: "not_in_channel" }),
    ["card U0OLIVIA", "result U0OLIVIA"],
  ],
])("%s", ([, request, owed]) => {
  expect(owedBy(request)).toEqual(owed);
});

it("replies go to the thread in which it was requested, or to that of the card", () => {
  const card = { channelId: "C01OPS", ts: "1.2" };
  const typedInThread = requestIn(stageOf("done"), { ...plain, threadTs: "1.1" }, { card });
  expect(placeOn("requested", typedInThread).threadTs).toBe("1.1");
  expect(placeOn("requested", requestIn(stageOf("done"), plain, { card })).threadTs).toBe("1.2");
  expect(placeOn("requested", requestIn(stageOf("done"), plain)).threadTs).toBeUndefined();
});
