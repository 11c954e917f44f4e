/** What a command sees of the world around it. */
export interface CommandIo {
  /** Its result, on standard output. */
  out(text: string): void;
  /** Why it could not be had, on standard error. */
  err(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export const processIo: CommandIo = {
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  env: process.env,
  cwd: process.cwd(),
};
