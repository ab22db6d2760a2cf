import type { Policy } from "./policy-file.ts";
import { callersIn, channelsIn } from "./policy-section.ts";

/** Every user ID and user group ID to which the policy gives rights. */
export function everyoneNamed({ access, teams, approvals }: Policy): readonly string[] {
  const entries = [
    ...Object.values(access).flat(),
    ...Object.values(teams).flatMap(({ view, operate, approve, breakGlass }) => [
      ...view,
      ...operate,
      ...approve,
      ...breakGlass,
    ]),
    ...approvals.flatMap(({ votes = [] }) => votes.flatMap(({ from }) => from)),
  ];
  return [...new Set(entries)].filter((entry) => entry !== "*");
}

/** Every channel to which the policy sends messages. */
export function channelsNamed(policy: Policy): readonly string[] {
  const { channels = [], sharedChannels, audit, alerts, teams, services } = policy;
  const all = [
    audit?.channel,
    alerts?.channel,
    ...[teams, services].flatMap((section) => Object.values(section).map(({ channel }) => channel)),
    ...callersIn(policy).map(({ channel }) => channel),
    ...channelsIn(policy),
    ...channels,
    ...sharedChannels,
  ];
  return [...new Set(all.filter((id) => id !== undefined))];
}
