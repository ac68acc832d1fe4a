import type { ResolvedSandbox } from '@shellfleet/protocol';

// Recognises from a failed command's output that its sandbox denied it something. This is a guess: it may offer a
// person a second attempt, never start one. The exit code alone proves nothing: 1, 2 and 127 are ordinary.

interface FailedCommand {
  exitCode: number | null;
  /** Output of the command, or its end. */
  output: string;
  sandbox: Pick<ResolvedSandbox, 'sandboxed' | 'network'>;
}

export interface SandboxDenial {
  denied: 'files' | 'network' | 'system-call';
  /** The line that reports the denial. */
  line: string;
}

/**
 * Most last lines that are searched. Programs report the reason of a failure at the end. An older line may be about a
 * failure that did not matter.
 */
const LAST_LINES = 10;
/** The most characters of a line that are searched. */
const LINE_CHARACTERS = 1000;

/**
 * Exit code of a shell for a file that may not be executed. Only the output then shows whether the sandbox denied it.
 */
const NOT_EXECUTABLE = 126;
/** A shell's exit code for a program that a forbidden system call ended: 128 + SIGSYS. */
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

/** Messages of refused system calls. A sandbox without sockets also refuses sockets with the message for files. */
const NOT_PERMITTED = /\boperation not permitted\b|\bEPERM\b|\[Errno 1\]/i;
const ABOUT_SOCKETS = /\b(?:sockets?|connect|sendto)\b/i;

/**
 * Returns what the sandbox seems to have denied. Returns undefined without a sandbox, or if the output reports no
 * denial.
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

/** Returns the last lines, the last one first. */
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
 * Tells whether the line is about a socket. If the line names no file, the lines before it are searched too, as in a
 * traceback.
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
