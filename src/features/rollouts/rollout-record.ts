import * as z from "zod";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import type { Target } from "../../registry/define.ts";
import { storedPerson, storedTarget } from "../../registry/stored-target.ts";
import {
  type OpenTarget,
  type Outcome,
  type RolloutProgress,
  type RolloutRecord,
  type Skipped,
  rolloutStates,
} from "./rollout.ts";
import type { Rolling } from "./rolling.ts";

export const rolloutState = defineRecord({
  name: "state of a rollout",
  schema: z.enum(rolloutStates),
});

export const rolloutRecord = defineRecord({
  name: "rollout",
  schema: objectOf<RolloutRecord>({
    id: z.string(),
    command: z.string(),
    input: z.record(z.string(), z.unknown()),
    words: z.string(),
    options: objectOf<Rolling>({
      maxUnavailable: z.number(),
      canary: z.boolean(),
      stopOnFailure: z.number(),
    }),
    total: z.number(),
    isEverything: z.boolean().exactOptional(),
    requester: storedPerson,
    channelId: z.string(),
    threadTs: z.string().exactOptional(),
    policyVersion: z.string(),
    leftOut: z.array(objectOf<Skipped>({ name: z.string(), why: z.string() })),
    createdAt: z.number(),
  }),
});

export const rolloutTargets = defineRecord<readonly Target[]>({
  name: "targets of a rollout",
  schema: z.array(storedTarget),
});

export const rolloutOutcome = defineRecord({
  name: "outcome of a target",
  schema: objectOf<Outcome>({
    n: z.number(),
    is: z.enum(["ok", "already", "failed", "unknown", "cancelled", "returned"]),
    request: z.string(),
    why: z.string().exactOptional(),
    tookMs: z.number().exactOptional(),
    isUntrusted: z.boolean().exactOptional(),
  }),
});

export const rolloutProgress = defineRecord({
  name: "progress of a rollout",
  schema: objectOf<RolloutProgress>({
    next: z.number(),
    open: z.array(objectOf<OpenTarget>({ n: z.number(), request: z.string() })),
    again: z.array(z.number()).exactOptional(),
    requeues: z.record(z.string(), z.number()).exactOptional(),
    ok: z.number(),
    already: z.number(),
    failed: z.number(),
    unknown: z.number().exactOptional(),
    why: z.string().exactOptional(),
    culprit: z.number().exactOptional(),
    endsAs: z.enum(["stopped", "failed"]).exactOptional(),
    by: z.looseObject({ id: z.string(), name: z.string() }).exactOptional(),
    startedAt: z.number().exactOptional(),
  }),
});
