import type { LogLevel as SlackLogLevel, Logger as SlackLogger } from "@slack/web-api";
import type { Log } from "./log.ts";
import { scrubText } from "./scrub.ts";

/**
 * What Slack's clients call their logger. They print whole payloads at debug level, response URLs and trigger ids
 * included, so debug goes nowhere; of the rest only texts and error messages are kept, no objects.
 * Clients also push their own level in: ours stays as configured.
 */
export function slackLogger(log: Log): SlackLogger {
  let named = "slack";
  const say =
    (write: Log["info"]) =>
    (...parts: readonly unknown[]): void => {
      const texts = parts.map((part) => (part instanceof Error ? part.message : part));
      const text = texts.filter((part) => typeof part === "string").join(" ");
      const failure = parts.find((part) => part instanceof Error);
      write("slack.client", {
        client: named,
        text: scrubText(text).slice(0, 500),
        ...(failure && { error: failure }),
      });
    };
  return {
    debug: () => {},
    info: say((event, fields) => log.debug(event, fields)),
    warn: say((event, fields) => log.warn(event, fields)),
    error: say((event, fields) => log.error(event, fields)),
    setLevel: () => {},
    // its enum has our four words, and importing it for real would load the whole client
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment, typescript/no-unsafe-type-assertion
    getLevel: () => log.level as SlackLogLevel,
    setName: (name) => {
      named = name;
    },
  };
}
