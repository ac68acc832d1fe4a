import type { ResolvedSandbox } from '@shellfleet/protocol';

// Recognises that a failed command was denied something by its sandbox. Only programs report
// that, in text, so this is a guess: it may be used to ask a person about a second attempt,
// never to start one. The exit code alone is no sign: grep's 1, and 2 and 127, are ordinary.

interface FailedCommand {
  exitCode: number | null;
  /** What it printed, or the end of that. */
  output: string;
  sandbox: Pick<ResolvedSandbox, 'sandboxed' | 'network'>;
}

export interface SandboxDenial {
  /** What the sandbox withheld. */
  denied: 'files' | 'network' | 'system-call';
  /** The line that reports it. */
  line: string;
}

/** A program reports why it gave up in its last lines. An older line may be about something that it got over. */
const LAST_LINES = 10;
/** A line without an end is not searched as a whole. */
const LINE_CHARACTERS = 1000;

/** Exit code of a shell for a file that may not be executed. It prints the words of a denial then. */
const NOT_EXECUTABLE = 126;
/** Exit code of a shell for a program that a forbidden system call ended: 128 + SIGSYS. */
const BAD_SYSTEM_CALL = 159;

const FILES = [
  /: (?:permission denied|operation not permitted|read-only file system)[\s'")\].]*$/i,
  /\b(?:EACCES|EPERM|EROFS)\b/,
  /\[Errno (?:1|13|30)\]/,
];

const NETWORK = [
  /\b(?:ENETUNREACH|EHOSTUNREACH|EAI_AGAIN)\b/,
  /\bnetwork is unreachable\b/i,
  /\bno route to host\b/i,
  /\bcould not resolve (?:host|proxy)\b/i,
  /\b(?:temporary failure in name resolution|temporary failure resolving)\b/i,
  /\bname or service not known\b/i,
  /\bunable to resolve host address\b/i,
  /\bgetaddrinfo ENOTFOUND\b/,
  /\b(?:CONNECT tunnel failed, response|tunnel connection failed:|HTTP code) 403\b/i,
];

/** A sandbox without sockets answers the attempt to make one as it answers what files may not be. */
const NOT_PERMITTED = /\boperation not permitted\b|\bEPERM\b|\[Errno 1\]/i;
const ABOUT_SOCKETS = /\b(?:sockets?|connect|sendto)\b/i;

/**
 * Returns what the sandbox seems to have denied the command. Undefined when nothing that it printed reports a denial,
 * or when it ran in no sandbox.
 */
export function sandboxDenial({ exitCode, output, sandbox }: FailedCommand): SandboxDenial | undefined {
  if (!sandbox.sandboxed || exitCode === null || exitCode === 0) return undefined;
  const lines = lastLines(output);
  for (const [index, line] of lines.entries()) {
    const isAboutSocket = NOT_PERMITTED.test(line) && namesSocket(line, lines.slice(index));
    const denied = deniedIn(line, exitCode, sandbox.network, isAboutSocket);
    if (denied !== undefined) return { denied, line };
  }
  return undefined;
}

/** The last one first. */
function lastLines(output: string): string[] {
  return output
    .slice(-LAST_LINES * LINE_CHARACTERS)
    .split(/[\r\n]+/)
    .map((line) => line.trim().slice(-LINE_CHARACTERS))
    .filter((line) => line !== '')
    .slice(-LAST_LINES)
    .reverse();
}

/**
 * The line itself, or those before it where it names no file: the traceback of an exception ends with the reason alone.
 */
function namesSocket(line: string, before: readonly string[]): boolean {
  return line.includes('/') ? ABOUT_SOCKETS.test(line) : before.some((other) => ABOUT_SOCKETS.test(other));
}

function deniedIn(line: string, exitCode: number, network: ResolvedSandbox['network'], isAboutSocket: boolean) {
  if (network !== 'full' && (isAboutSocket || NETWORK.some((sign) => sign.test(line)))) return 'network';
  if (exitCode !== NOT_EXECUTABLE && FILES.some((sign) => sign.test(line))) return 'files';
  if (exitCode === BAD_SYSTEM_CALL && /\bbad system call\b/i.test(line)) return 'system-call';
  return undefined;
}
