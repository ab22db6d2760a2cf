/** How long this thread has computed so far, in ms: what else the machine does meanwhile doesn't count. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
