/** A Slack with one workspace and one app, and how a test arranges it. */
export { type SandboxSlack, type SandboxSlackOptions, startSandboxSlack } from "./sandbox-slack.ts";
export type { Delivery } from "./deliver/deliveries.ts";
export { addChannel } from "./state/channels.ts";
export { addGroup, addPerson } from "./state/people.ts";
export type { AppSettings } from "./state/app-settings.ts";
export { seedDemo } from "./state/seed.ts";
export type { Workspace } from "./state/workspace.ts";
export type { CallRecord } from "./web-api/call-log.ts";
export type { Storm } from "./web-api/weather.ts";
