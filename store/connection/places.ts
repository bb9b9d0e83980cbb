/** A fixed number of places that are taken in the order of coming. */
export class Places {
	private readonly waiting: Array<() => void> = [];

	constructor(private free: number) {}

	/** Whether a place was taken; false when none came free within so many milliseconds. Whoever took one leaves it. */
	async take(patienceMs: number): Promise<boolean> {
		if (this.free > 0) {
			this.free--;
			return true;
		}
		return await new Promise((resolve) => {
			const enter = () => {
				clearTimeout(timer);
				resolve(true);
			};
			const timer = setTimeout(() => {
				this.waiting.splice(this.waiting.indexOf(enter), 1);
				resolve(false);
			}, patienceMs);
			this.waiting.push(enter);
		});
	}

	leave(): void {
		const next = this.waiting.shift();
		if (next) next();
		else this.free++;
	}
}
