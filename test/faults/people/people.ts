import type { Stage } from "../stage/stage.ts";

/** Six who may ask, each with a screen of their own: one dialog at a time is open there. */
export const people = ["olivia", "oscar", "oona", "otto", "odette", "orson"];
export const channels = ["ops", "ops-1", "ops-2", "ops-3", "ops-4", "ops-5", "ops-6", "ops-7"];

/** Puts them, and those who approve, into the workspace and its channels. */
export async function fillSlack({ slack }: Stage): Promise<void> {
  for (const name of people.slice(1))
    await slack.edit("addPerson", { id: `U0${name.toUpperCase()}`, name, realName: name });
  await slack.edit("setGroupMembers", "oncall", people);
  const members = [
    ...people.map((name) => `U0${name.toUpperCase()}`),
    "U0AMIR",
    "U0ADA",
    "U0GATEHOUSE",
  ];
  for (const [n, name] of channels.entries())
    if (n > 0) await slack.edit("addChannel", { id: `C1OPS${n}`, name, members });
  for (const name of people.slice(1)) await slack.edit("join", name, "ops");
}
