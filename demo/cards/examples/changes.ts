import { create } from "../../../src/commands/project/create.ts";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import { update } from "../../../src/commands/project/update.ts";
import { resize } from "../../../src/commands/vm/resize.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { start } from "../../../src/commands/vm/start.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import type { Target } from "../../../src/registry/define.ts";
import { examplesOfChange } from "../changes.ts";
import type { Example } from "../example.ts";

const project = (id: string, name: string): Target => ({
  kind: "project",
  id,
  name,
  projectId: id,
  status: "ACTIVE",
});
const staging = () => project("prj-staging", "staging");

export const examples: readonly Example[] = [
  ...examplesOfChange(start),
  ...examplesOfChange(stop),
  ...examplesOfChange(restart),
  ...examplesOfChange(resize, { input: { cpu: 8, memory: 32 } }),
  ...examplesOfChange(create, {
    target: () => project("", "staging-2"),
    input: {
      name: "staging-2",
      type: "GIT_DEPLOY",
      region: "eu-west",
      gitUrl: "https://git.example/a",
    },
  }),
  ...examplesOfChange(update, { target: staging, input: { cpu: 4, memory: 16 } }),
  ...examplesOfChange(deleteProject, { target: staging }),
];
