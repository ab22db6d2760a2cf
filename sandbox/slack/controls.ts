import type { DeliveryKind } from "./deliver/deliveries.ts";
import { fieldsOf, textOf } from "./fields.ts";
import type { SandboxSlack } from "./sandbox-slack.ts";
import { seenView } from "./state/seen-by.ts";
import type { RateLimits } from "./web-api/rate-limits.ts";
import type { Storm } from "./web-api/weather.ts";

/**
 * What can be asked of a sandbox Slack in its own process, by name, with JSON arguments in a list:
 * `POST /` with `{ "question": "act", "args": ["olivia", "types", "ops", "/vm list"] }`.
 */
function controlsOf(slack: SandboxSlack): Record<string, (...args: never[]) => unknown> {
  return {
    /** A person does something: who, which action, its arguments. */
    act: (who: string, action: string, ...args: unknown[]) =>
      invoke(slack.person(who), action, args),
    seen: (who: string) => slack.seenBy(who),
    /** What `seen` says of open modals, without the channels: small, however long the day was. */
    modals: (who: string) => (slack.workspace.modals.get(slack.person(who).id) ?? []).map(seenView),
    /** Waits for a change after `version`, at most `waitMs`; answers with the version then. */
    changed: async (version: number, waitMs: number) => {
      const { changes } = slack.workspace;
      const patience = { stillMs: waitMs, longestMs: waitMs };
      await changes
        .until(
          () => changes.version > version || undefined,
          patience,
          () => "",
        )
        .catch(() => undefined);
      return changes.version;
    },
    calls: (method?: string) => slack.calls(method),
    callCounts: () => slack.callCounts(),
    forgetCalls: () => slack.forgetCalls(),
    deliveries: (kind?: DeliveryKind) => slack.deliveries(kind),
    messages: () => slack.messages(),
    connections: () => slack.socketMode.connections,
    redeliver: (id: string, change?: { headers?: Record<string, string>; atSeconds?: number }) =>
      slack.redeliver(id, change),
    sendRaw: (body: string, headers: Record<string, string>) => slack.sendRaw(body, headers),
    sign: (seconds: number, body: string) => slack.sign(seconds, body),
    disconnect: (reason: Parameters<typeof slack.socketMode.disconnect>[0]) =>
      slack.socketMode.disconnect(reason),
    sendFrame: (text: string) => slack.socketMode.sendFrame(text),
    addWeather: (storm: Storm) => void slack.weather.add(storm),
    clearWeather: () => slack.weather.clear(),
    setRateLimits: (limits: RateLimits) => slack.setRateLimits(limits),
    /** Changes the app's settings, `requestUrl` among them (null: Socket Mode). */
    settings: (change: Partial<typeof slack.app>) => {
      Object.assign(
        slack.app,
        change,
        fieldsOf(change)["requestUrl"] === null ? { requestUrl: undefined } : {},
      );
      return slack.app;
    },
    /** Edits the workspace: which edit, its arguments. */
    edit: (edit: string, ...args: unknown[]) => invoke(slack.edit, edit, args),
  };
}

/** Answers one question. Throws when there is no such question, or what was asked for can't be done. */
export async function answerControl(slack: SandboxSlack, body: unknown): Promise<unknown> {
  const { question, args } = fieldsOf(body);
  return invoke(controlsOf(slack), textOf(question), Array.isArray(args) ? args : []);
}

function invoke(target: object, name: string, args: readonly unknown[]): unknown {
  const found: unknown = Object.hasOwn(target, name) ? Reflect.get(target, name) : undefined;
  if (typeof found !== "function")
    throw new Error(`There is no ${name}; there are ${Object.keys(target).join(", ")}`);
  return Reflect.apply(found, target, args);
}
