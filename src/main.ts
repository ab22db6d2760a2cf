import { catchSignals, signalExitCodes } from "./operate/node-process.ts";

// Before anything else is loaded: a signal may come at once
const signals = catchSignals();

const { isRoleAlone, runCommandLine } = await import("./cli/command-line.ts");
const words = process.argv.slice(2);
// A role needs none of the programs of a terminal in its memory
const { features, handedToPrograms, policyTerms } = await import("./features/index.ts");
const programs = isRoleAlone(words)
  ? {}
  : (await import("./cli/programs.ts")).programsFor(handedToPrograms);

let lastWords = () => "";
// Whoever only looks at something ends at once, with the code that shells give to a signal: 1 would be a refusal of the program
const endAtOnce = () => {
  process.stderr.write(lastWords());
  const { SIGINT, SIGTERM } = signalExitCodes;
  process.exit(signals.stopping.reason === "SIGINT" ? SIGINT : SIGTERM);
};
signals.stopping.addEventListener("abort", endAtOnce);
const answered = await runCommandLine(words, programs, {
  write: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  onSignal: (tell) => (lastWords = tell),
});
if ("role" in answered) {
  signals.stopping.removeEventListener("abort", endAtOnce);
  const { runProcess } = await import("./operate/process.ts");
  await runProcess(answered.role, signals, { features, terms: policyTerms });
} else {
  // Set, not called: an export that goes through a pipe must not be cut
  process.exitCode = answered.exitCode;
}
