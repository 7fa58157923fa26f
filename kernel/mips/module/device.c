// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/tst: gives a process the page of restartable procedures (page.S).
 *
 *	open	read: the address of the page, in decimal	mmap: one page, there, execute only	close
 *
 * The mapping keeps the module loaded; nothing has to be cleaned up behind a
 * process that dies.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>

#include <asm/cacheflush.h>
#include <asm/cpu-features.h>
#include <asm/k1magic.h>

#include "slots.h"

extern const char tst_page_start[], tst_page_end[];

static struct page *page;

static ssize_t tst_read(struct file *file, char __user *buffer, size_t count, loff_t *position)
{
	char text[16];
	int length = scnprintf(text, sizeof(text), "%lu\n", (unsigned long)TST_PAGE);

	return simple_read_from_buffer(buffer, count, position, text, length);
}

/*
 * mmap() asks here for the address, instead of where TST_PAGE is refused. As
 * with any fixed address, what was mapped there goes first, even if tst_mmap()
 * then refuses.
 */
static unsigned long tst_get_unmapped_area(struct file *file, unsigned long address,
					   unsigned long length, unsigned long page_offset,
					   unsigned long flags)
{
	if (address != TST_PAGE || length != PAGE_SIZE || page_offset)
		return -EINVAL;
	return address;
}

/* Neither the place nor the rights of a mapping change, and it has no parts. */
static int tst_refuse_move(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static int tst_refuse_rights(struct vm_area_struct *vma, unsigned long start,
			     unsigned long end, unsigned long rights)
{
	return -EACCES;
}

static const struct vm_operations_struct tst_vm_operations = {
	.mremap = tst_refuse_move,
	.mprotect = tst_refuse_rights,
};

static int tst_mmap(struct file *file, struct vm_area_struct *vma)
{
	if ((vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC)) != VM_EXEC)
		return -EACCES;
	/* Without the VM_MAY flags a debugger cannot write into it either. */
	vma->vm_flags &= ~(VM_MAYREAD | VM_MAYWRITE);
	vma->vm_flags |= VM_DONTEXPAND;
	vma->vm_ops = &tst_vm_operations;
	/* Linux lets what may be executed be read; not here, where the processor can tell. */
	if (cpu_has_rixi)
		vma->vm_page_prot = __pgprot(pgprot_val(vma->vm_page_prot) | _PAGE_NO_READ);
	return vm_insert_page(vma, vma->vm_start, page);
}

static const struct file_operations tst_file_operations = {
	.owner = THIS_MODULE,
	.read = tst_read,
	.get_unmapped_area = tst_get_unmapped_area,
	.mmap = tst_mmap,
};

static struct miscdevice tst_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tst",
	.mode = 0444,
	.fops = &tst_file_operations,
};

static int __init tst_init(void)
{
	size_t bytes = tst_page_end - tst_page_start;
	int error;

	if (bytes > PAGE_SIZE)
		return -E2BIG;
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return -ENOMEM;
	memcpy(page_address(page), tst_page_start, bytes);
	flush_dcache_page(page);
	k1magic_set_slot_size(TST_SLOT_BYTES);
	error = misc_register(&tst_device);
	if (error) {
		k1magic_set_slot_size(0);
		__free_page(page);
	}
	return error;
}

static void __exit tst_exit(void)
{
	misc_deregister(&tst_device);
	k1magic_set_slot_size(0);
	__free_page(page);
}

module_init(tst_init);
module_exit(tst_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Restartable test-and-set without ll/sc");
