import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../errors.ts";
import { type BotIdentity, readIdentity } from "./identity.ts";
import { CannotTell } from "./people.ts";
import type { Web } from "../web.ts";

/** Who the bot is in Slack, learned in the background for as long as it takes. */
export interface Identity {
  /** Throws CannotTell until Slack has said it. */
  known(): BotIdentity;
  /** Rejects with a UserError when Slack refuses the token: that needs a person. */
  readonly learned: Promise<BotIdentity>;
  close(): Promise<void>;
}

const firstWaitMs = 250;
const longestWaitMs = 5_000;

export function learnIdentity(web: Web, options: { appToken?: string | undefined }): Identity {
  const closing = new AbortController();
  let known: BotIdentity | undefined;
  let why = "Slack hasn't answered yet";

  async function learn(): Promise<BotIdentity> {
    for (let tries = 0; ; tries += 1) {
      const answer = await readIdentity(web, options);
      if (!("problem" in answer)) return (known = answer);
      if (!answer.retry)
        throw new UserError(answer.problem, "Check SLACK_BOT_TOKEN and SLACK_API_URL");
      why = answer.problem;
      const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** tries);
      await sleep(waitMs, undefined, { signal: closing.signal });
    }
  }

  const learned = learn();
  learned.catch(() => undefined); // whoever needs it awaits it
  return {
    known() {
      if (known === undefined) throw new CannotTell(why);
      return known;
    },
    learned,
    close: async () => closing.abort(),
  };
}
