import * as z from "zod";
import { objectOf } from "../redis/define-record.ts";
import type { Target } from "./define.ts";

const optionalNumber = z.number().exactOptional();

/** A target as records store it. */
export const storedTarget = objectOf<Target>({
  kind: z.enum(["vm", "project"]),
  id: z.string(),
  name: z.string(),
  projectId: z.string(),
  projectName: z.string().exactOptional(),
  status: z.string(),
  createdAt: z.string().exactOptional(),
  specs: z
    .looseObject({ cpu: optionalNumber, memory: optionalNumber, disk: optionalNumber })
    .exactOptional(),
  sharesName: z.boolean().exactOptional(),
});

/** A person as records name them. */
export const storedPerson = z.looseObject({
  id: z.string(),
  teamId: z.string(),
  name: z.string(),
});
