import { catchSignals, outliveReaders, signalExitCodes } from "./operate/node-process.ts";

// This runs before anything else is loaded, because a signal may come at any time.
const signals = catchSignals();
outliveReaders();

const { runCommandLine } = await import("./cli/command-line.ts");
const { programsFor } = await import("./cli/programs.ts");
const words = process.argv.slice(2);
// Features load nearly all of Gatehouse, so only who needs them does.
const loadFeatures = () => import("./features/index.ts");
const programs = programsFor(async () => (await loadFeatures()).handedToPrograms);

let lastWords = () => "";
// A terminal program ends at once when it gets a signal. It exits with the code that shells use for
// that signal, because exit code 1 would mean that the program itself refused something.
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
  const { features, policyTerms } = await loadFeatures();
  const { runProcess } = await import("./operate/process.ts");
  await runProcess(answered.role, signals, { features, terms: policyTerms });
} else {
  // `process.exitCode` is set instead of calling `process.exit`, which would cut output that is
  // still going through a pipe.
  process.exitCode = answered.exitCode;
}
