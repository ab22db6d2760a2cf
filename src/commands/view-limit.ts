import type { Person } from "../registry/invocation.ts";
import { scopeShownTo, seesMoreElsewhere } from "../core/permit/access.ts";
import { type Markdown, md } from "../messages/markdown.ts";
import type { ReadContext } from "./context.ts";

/** How an answer says that it tells only a part. What is left out isn't named, or even counted. */
export interface ViewLimit {
  /** Follows what is told: `3 VMs that you can see`. */
  within: string;
  /** Where the rest is told. Undefined where the reader can't get more. */
  rest?: Markdown;
}

const ofReader = ({ person, isShared }: { person: Person; isShared: boolean }): ViewLimit => ({
  within: isShared ? ` that ${person.name} can see` : " that you can see",
});

/** The limit of an answer that tells all that its reader sees. Undefined when that is everything. */
export async function viewLimit(
  reading: Pick<ReadContext, "seesAll" | "person" | "isShared">,
): Promise<ViewLimit | undefined> {
  return (await reading.seesAll()) ? undefined : ofReader(reading);
}

/** The limit of an answer that tells only what its channel may be told, too. */
export function viewLimitHere(
  reading: Pick<ReadContext, "person" | "channelId" | "policy" | "ourTeamId" | "isShared">,
): ViewLimit | undefined {
  const { person, channelId, policy, ourTeamId } = reading;
  if (scopeShownTo(person, channelId, policy, ourTeamId) === undefined) return undefined;
  if (!seesMoreElsewhere(channelId, person, policy, ourTeamId)) return ofReader(reading);
  return {
    within: `${ofReader(reading).within} here`,
    rest: md`An answer here tells only what this channel may see. Your team's channel, or a direct message to Gatehouse, tells the rest.`,
  };
}
