<<<<<<< HEAD

export { grant } from './admission/grant.ts';
export type { Entry, Taken } from './entry.ts';
export { type Adopted, adopt } from './host/adopt.ts';
export { announce } from './host/announce.ts';
export { type Appended, append } from './host/append.ts';
export { type Finished, type FinishOptions, finish } from './host/finish.ts';
export type { Fenced, Owner } from './host/owner.ts';
export { release } from './host/release.ts';
export { rerun } from './host/rerun.ts';
export { take } from './host/take.ts';
export { type InboxNotice, notify } from './inbox.ts';
export { type Cancelled, cancel } from './producer/cancel.ts';
export { type Closed, close } from './producer/close.ts';
export { type Opened, open } from './producer/open.ts';
export { type Submission, type Submitted, submit } from './producer/submit.ts';
export { loadMailboxScripts, toQueueError } from './script.ts';
export { createSealer, createSealKey, type Sealer, type SealPlace } from './seal.ts';
export { note } from './upkeep/note.ts';
export { type SweepLimits, type Swept, sweep } from './upkeep/sweep.ts';

=======

>>>>>>> setup
