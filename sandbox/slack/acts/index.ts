/** What a person does in the sandbox Slack (`slack.person("olivia")`) and sees there, and what is seen as text. */
export type { FormValues, Outcome, PersonActions, TypeOptions, Where } from "../actions.ts";
export { describeMessage, describeSeen, wordsIn } from "../describe-seen.ts";
export type { Seen, SeenChannel, SeenMessage, SeenNotification, SeenView } from "../seen.ts";
