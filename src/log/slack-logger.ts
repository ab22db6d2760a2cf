import type { LogLevel as SlackLogLevel, Logger as SlackLogger } from "@slack/web-api";
import type { Log } from "./log.ts";
import { scrubText } from "./scrub.ts";

/**
 * The logger that Slack's clients are given. At debug level they print whole payloads, including
 * response URLs and trigger IDs, so debug is dropped. From other levels, only texts and error
 * messages are kept, and no objects. Clients also try to set their own level, which is ignored.
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
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment, typescript/no-unsafe-type-assertion -- its enum has our four words, and importing it for real would load the whole client
    getLevel: () => log.level as SlackLogLevel,
    setName: (name) => {
      named = name;
    },
  };
}
