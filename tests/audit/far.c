/* A function 4 MiB behind the beginning of its program, 128 KiB long. */
__asm__(".text\n.skip 0x3f8000\n");

void far_away(void) {
    __asm__ volatile(".skip 0x20000, 0x90");
}
