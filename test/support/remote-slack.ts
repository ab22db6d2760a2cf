import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import type { SandboxSlack } from "../../sandbox/slack/sandbox-slack.ts";
import { usualPatience } from "../../sandbox/slack/state/changes.ts";
import type { Seen } from "../../sandbox/slack/seen.ts";
import type { WorkspaceEdits } from "../../sandbox/slack/acts/edits.ts";

/** The same questions as in process, asked of a sandbox Slack that runs as its own process. */
export interface RemoteSlack {
  act<A extends Exclude<keyof PersonActions, "id" | "name" | "until">>(
    who: string,
    action: A,
    ...args: Parameters<PersonActions[A]>
  ): Promise<Awaited<ReturnType<PersonActions[A]>>>;
  edit<E extends keyof WorkspaceEdits>(
    edit: E,
    ...args: Parameters<WorkspaceEdits[E]>
  ): Promise<Awaited<ReturnType<WorkspaceEdits[E]>>>;
  seen(who: string): Promise<Seen>;
  /** Resolves as soon as `wanted` holds of what this person sees; looks after every change. */
  until(
    who: string,
    wanted: (seen: Seen) => boolean,
    patience?: { stillMs: number },
  ): Promise<Seen>;
  calls(method?: string): Promise<ReturnType<SandboxSlack["calls"]>>;
  callCounts(): Promise<Record<string, number>>;
  deliveries(): Promise<ReturnType<SandboxSlack["deliveries"]>>;
  messages(): Promise<ReturnType<SandboxSlack["messages"]>>;
  /** Anything else of `controls.ts`. */
  question<T>(name: string, ...args: unknown[]): Promise<T>;
}

/** `controlUrl`: from the line that the process prints when it is ready. */
export function remoteSlack(controlUrl: string): RemoteSlack {
  const question = async <T>(name: string, ...args: unknown[]): Promise<T> => {
    // JSON has no undefined: arguments left out at the end stay out.
    while (args.length > 0 && args.at(-1) === undefined) args.pop();
    const response = await fetch(controlUrl, {
      method: "POST",
      body: JSON.stringify({ question: name, args }),
    });
    const answer: { ok: boolean; value: T; error: string } = JSON.parse(await response.text());
    if (!answer.ok) throw new Error(answer.error);
    return answer.value;
  };
  return {
    act: (who, action, ...args) => question("act", who, action, ...args),
    edit: (edit, ...args) => question("edit", edit, ...args),
    seen: (who) => question("seen", who),
    until: async (who, wanted, { stillMs } = usualPatience) => {
      for (;;) {
        const seen = await question<Seen>("seen", who);
        if (wanted(seen)) return seen;
        const version = await question<number>("changed", seen.version, stillMs);
        if (version === seen.version)
          throw new Error(
            `Nothing changed for ${stillMs} ms: ${who} wanted ${String(wanted)} and saw:\n${describeSeen(seen)}`,
          );
      }
    },
    calls: (method) => question("calls", method),
    callCounts: () => question("callCounts"),
    deliveries: () => question("deliveries"),
    messages: () => question("messages"),
    question,
  };
}
